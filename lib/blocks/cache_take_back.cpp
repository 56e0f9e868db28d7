#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "blocks/bucket_set.hpp"
#include "blocks/cache.hpp"

namespace tensorpool::blocks {
namespace {

// An address above every magazine.
void** beyond_all() noexcept {
    return reinterpret_cast<void**>(UINTPTR_MAX);
}

}  // namespace

bool Cache::close() noexcept {
    if (!lock_.is_claimed()) return false;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        detail::LoadedMagazine& magazine = loaded[bucket];
        Side& side = sides_[bucket];
        if (!was_closed_) {
            side.exposed = magazine.bottom.load(std::memory_order_relaxed);
            const bool has_concealed = set_->is_marked() && side.loaded != nullptr;
            side.bottom = has_concealed ? side.loaded->blocks : side.exposed;
        }
        magazine.bottom.store(beyond_all(), std::memory_order_relaxed);
        magazine.limit.store(nullptr, std::memory_order_relaxed);
    }
    was_closed_ = true;
    return true;
}

// The loaded magazine itself stays: a call of its thread that is in progress may read or write the
// entry at its top.
void Cache::take_back(pages::Changes& changes) noexcept {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        detail::LoadedMagazine& magazine = loaded[bucket];
        Side& side = sides_[bucket];
        // Acquire pairs with the owner's release in `push`. A `pop` of the owner that is about to
        // fail may have lowered the top below the bottom that an earlier `take_back` left.
        void** const top =
            std::max(side.exposed, std::atomic_ref(magazine.top).load(std::memory_order_acquire));
        if (detail::BudgetNode* const budget = exposed_to()) {
            mark_exposed(bucket, side.exposed, top, nullptr);
            budget->refund(static_cast<std::size_t>(top - side.exposed) *
                           set_->block_bytes(bucket));
        }
        bring_home(bucket, side.bottom, static_cast<unsigned>(top - side.bottom), changes);
        side.bottom = side.exposed = top;
        magazine.bottom.store(top, std::memory_order_relaxed);
        magazine.limit.store(top, std::memory_order_relaxed);
        if (Magazine* const spare = std::exchange(side.spare, nullptr)) {
            bring_home(bucket, spare->blocks, spare->count, changes);
            spare->count = 0;
            (*set_)[bucket].give(*spare);
        }
        park_no_more(bucket);
        forget_growth(bucket);
    }
    empty_large(changes);
}

void Cache::bring_home(unsigned bucket, void** blocks, unsigned count,
                       pages::Changes& changes) noexcept {
    if (count == 0) return;
    detail::add_release(counters->buckets[bucket].returned, count);
    (*set_)[bucket].bring_home(blocks, count, changes);
}

bool Cache::was_idle() noexcept {
    std::uint64_t operations = 0;
    for (const detail::BucketCounters& counted : counters->buckets) {
        operations += counted.allocations.load(std::memory_order_relaxed) +
                      counted.deallocations.load(std::memory_order_relaxed);
    }
    const std::uint64_t large = counters->large.allocations.load(std::memory_order_relaxed) +
                                counters->large.deallocations.load(std::memory_order_relaxed);
    const bool calls_small = std::exchange(seen_operations_, operations) != operations;
    const bool calls_large = std::exchange(seen_large_operations_, large) != large;
    return may_park_large_bytes() != 0 ? !calls_large : !calls_small && !calls_large;
}

}  // namespace tensorpool::blocks
