// In Boost 1.74, the only constructor that takes an allocator asserts that the stack's size is
// fixed. This stack's is not, but the constructor does what is needed without that assertion. It is
// used in this file only.
#define BOOST_DISABLE_ASSERTS

#include "blocks/depot.hpp"

#include <new>

#include "platform/fail.hpp"

namespace tensorpool::blocks {

// Boost.Atomic begins with an uninitialized pointer, which the stack's constructor then sets.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

Depot::Depot(pages::RecordArena& records)
    : table_(records), full_(table_), empty_(RecordAllocator<Magazine*>(records)) {}

bool Depot::enter(Magazine& magazine) noexcept {
    try {
        if (nodes_ == entered_) {
            empty_.reserve(1);
            ++nodes_;
        }
    } catch (const std::bad_alloc&) {
        return false;
    }
    if (!table_.enter(magazine)) return false;
    ++entered_;
    return true;
}

void Depot::leave(Magazine& magazine) noexcept {
    table_.leave(magazine);
    --entered_;
}

void Depot::no_room_for(const Magazine& magazine) noexcept {
    platform::fail("depot: no room for magazine %p, although room was reserved when it was made",
                   static_cast<const void*>(&magazine));
}

}  // namespace tensorpool::blocks
