// Caches of marked sets: which of their free blocks inline paths see, and to which budget these are
// charged.

#include <algorithm>
#include <utility>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_registry.hpp"
#include "limits/scope_budget.hpp"

namespace tensorpool::blocks {

// Charges blocks of the loaded magazine to the budget of the thread's scope: one at first, then
// twice as many each time, as far as the limits allow. REQUIRES: no block is exposed.
bool Cache::expose(unsigned bucket, pages::SlowPath& path) noexcept {
    const auto concealed = [&] {
        const Side& side = sides_[bucket];
        return side.loaded == nullptr ? 0 : loaded[bucket].top - side.loaded->blocks;
    };
    if (concealed() != 0) count_trip();  // which may take them away
    if (concealed() == 0 && !refill(bucket, path)) return false;
    Side& side = sides_[bucket];
    const std::size_t block_bytes = set_->block_bytes(bucket);
    const auto wanted = std::min(std::ptrdiff_t{1} << side.more_to_expose, concealed());
    detail::BudgetNode& budget = *limits::scope_budget;
    const std::size_t charged = budget.charge(
        block_bytes, static_cast<std::size_t>(wanted) * block_bytes, block_bytes, path.budget);
    if (charged == 0) {
        path.refusal = path.budget.refusal();
        give_back(bucket);  // another thread could not take it back if there was no room for it
        return false;
    }
    if (side.more_to_expose < 7) ++side.more_to_expose;
    detail::LoadedMagazine& magazine = loaded[bucket];
    void** const bottom = magazine.top - charged / block_bytes;
    thread_registry().note_addresses(*set_, bottom, charged / block_bytes);
    mark_exposed(bucket, bottom, magazine.top, &budget);
    magazine.bottom.store(bottom, std::memory_order_relaxed);
    exposed_to_.store(&budget, std::memory_order_relaxed);
    if (!is_listed) own_caches().list_exposing(*this);
    return true;
}

void Cache::mark_exposed(unsigned bucket, void** from, void** to, base::BlockMark* mark) noexcept {
    const Bucket& central = (*set_)[bucket];
    for (void** at = from; at != to; ++at) {
        central.mark_of(*at).store(mark, std::memory_order_relaxed);
    }
}

// Returns the bytes to refund.
std::size_t Cache::conceal(unsigned bucket) noexcept {
    detail::LoadedMagazine& magazine = loaded[bucket];
    void** const bottom = magazine.bottom.load(std::memory_order_relaxed);
    if (bottom == magazine.top) return 0;
    mark_exposed(bucket, bottom, magazine.top, nullptr);
    magazine.bottom.store(magazine.top, std::memory_order_relaxed);
    return static_cast<std::size_t>(magazine.top - bottom) * set_->block_bytes(bucket);
}

bool Cache::try_conceal() noexcept {
    if (!lock_.try_lock()) return false;
    if (std::exchange(was_closed_, false)) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) open_again(bucket);
    }
    std::size_t bytes = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        bytes += conceal(bucket);
        sides_[bucket].more_to_expose = 0;
    }
    if (detail::BudgetNode* const budget = exposed_to()) budget->refund(bytes);
    exposed_to_.store(nullptr, std::memory_order_relaxed);
    lock_.unlock();
    return true;
}

bool Cache::push_exposed(unsigned bucket, void* block, const base::BlockMark* mark) noexcept {
    if (mark != exposed_to() || !lock_.try_lock()) [[unlikely]]
        return false;
    detail::LoadedMagazine& magazine = loaded[bucket];
    const bool has_room = !was_closed_ && magazine.top < room_end(bucket);
    if (has_room) [[likely]] {
        *magazine.top = block;
        count_push(bucket);
    }
    lock_.unlock();
    return has_room;
}

// Accepts a free block without a mark, below the exposed ones.
void Cache::push_marked(unsigned bucket, void* block) noexcept {
    detail::LoadedMagazine& magazine = loaded[bucket];
    void** const bottom = magazine.bottom.load(std::memory_order_relaxed);
    if (bottom != magazine.top) *magazine.top = *bottom;
    *bottom = block;
    magazine.bottom.store(bottom + 1, std::memory_order_relaxed);
    count_push(bucket);
}

// The release store is for a thread that takes the blocks.
void Cache::count_push(unsigned bucket) noexcept {
    detail::LoadedMagazine& magazine = loaded[bucket];
    std::atomic_ref(magazine.top).store(magazine.top + 1, std::memory_order_release);
    detail::add_release(counters->buckets[bucket].deallocations, 1);
}

}  // namespace tensorpool::blocks
