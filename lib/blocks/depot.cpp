// Boost 1.74 asserts in the only constructor that takes an allocator that the stack's size is
// fixed. Ours is not, and that constructor does what is wanted: it is used in this file alone.
#define BOOST_DISABLE_ASSERTS

#include "blocks/depot.hpp"

#include <new>

#include "platform/fail.hpp"

namespace tensorpool::blocks {

// Boost.Atomic begins with a pointer that has no value yet, and the stack's constructor gives it
// one.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

Depot::Depot(pages::RecordArena& records)
    : places_(records), full_(places_), empty_(RecordAllocator<Magazine*>(records)) {}

bool Depot::enter(Magazine& magazine) noexcept {
    try {
        if (nodes_ == entered_) {
            empty_.reserve(1);
            ++nodes_;
        }
    } catch (const std::bad_alloc&) {
        return false;
    }
    if (!places_.enter(magazine)) return false;
    ++entered_;
    return true;
}

void Depot::leave(Magazine& magazine) noexcept {
    places_.leave(magazine);
    --entered_;
}

void Depot::no_room_for(const Magazine& magazine) noexcept {
    platform::fail("depot: no room for magazine %p, which was made with it",
                   static_cast<const void*>(&magazine));
}

}  // namespace tensorpool::blocks
