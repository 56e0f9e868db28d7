#include "blocks/depot.hpp"

#include <new>

#include "platform/fail.hpp"

namespace tensorpool::blocks {

bool Depot::make_room() noexcept {
    try {
        full_.reserve(1);
        empty_.reserve(1);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

void Depot::no_node_for(const Magazine& magazine) noexcept {
    platform::fail("depot: no node for magazine %p, which was made with one",
               static_cast<const void*>(&magazine));
}

}  // namespace tensorpool::blocks
