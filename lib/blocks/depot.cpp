// Boost 1.74 asserts in the only constructor that takes an allocator that the stack's size is
// fixed. Ours is not, and that constructor does what is wanted: it is used in this file alone.
#define BOOST_DISABLE_ASSERTS

#include "blocks/depot.hpp"

#include <new>

#include "platform/fail.hpp"

namespace tensorpool::blocks {

Depot::Depot(pages::RecordArena& records)
    : full_(RecordAllocator<Magazine*>(records)), empty_(RecordAllocator<Magazine*>(records)) {}

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
