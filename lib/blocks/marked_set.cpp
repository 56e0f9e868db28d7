#include "blocks/marked_set.hpp"

#include <bit>

#include "blocks/take_back.hpp"
#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {

Cache* attach_marked(BucketSet& first) noexcept {
    if (!first.may_cache()) return nullptr;
    Cache* const own = own_caches().own(first.number());
    if (own != nullptr && own->marked != nullptr) [[likely]]
        return thread_registry().attached(own->marked->set());
    if (thread_registry().attach(first) == nullptr) return nullptr;
    BucketSet* const set = thread_registry().marked_set(first);
    return set == nullptr ? nullptr : thread_registry().attach(*set);
}

void scope_changed() noexcept {
    ThreadCaches& own = own_caches();
    while (!own.conceal_all()) wait_for_take_back();
    detail::thread_table = limits::scope_budget == nullptr ? &own : &own.in_scope;
}

bool exposes_within(BucketSet& first, const detail::BudgetNode& budget) noexcept {
    const std::lock_guard guard(thread_registry());
    const BucketSet* const set = first.shared().marked.load(std::memory_order_relaxed);
    if (set == nullptr) return false;
    return std::any_of(set->caches.begin(), set->caches.end(), [&](const Cache& cache) {
        const detail::BudgetNode* const charged = cache.exposed_to();
        return charged != nullptr && charged->is_within(budget);
    });
}

void hide_frees(BucketSet& first) noexcept {
    if (first.shared().hides_frees.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(thread_registry());
    first.shared().hides_frees.store(true, std::memory_order_relaxed);
    first.for_each_series([](BucketSet& set) {
        for (Cache& cache : set.caches) {
            cache.first_unguarded.store(UINTPTR_MAX, std::memory_order_relaxed);
        }
    });
}

// Charges blocks of the loaded magazine to the budget of the thread's scope, as far as the limits
// allow. REQUIRES: no block is exposed.
bool Cache::expose(unsigned bucket, pages::SlowPath& path) noexcept {
    MagazinePair& pair = pairs_[bucket];
    if (pair.loaded.concealed() != 0) count_trip();  // which may take them away
    if (pair.loaded.concealed() == 0 && !exchange_for_full(pair, path) &&
        !load_from_spans(pair, path)) {
        return false;
    }
    const std::size_t block_bytes = set_->block_bytes(bucket);
    detail::BudgetNode& budget = *limits::scope_budget;
    const std::size_t charged =
        budget.charge(block_bytes, pair.loaded.to_expose() * block_bytes, block_bytes, path.budget);
    if (charged == 0) {
        path.refusal = path.budget.refusal();
        give_back(pair);  // another thread could not take it back if there was no room for it
        return false;
    }
    const std::size_t count = charged / block_bytes;
    note_addresses(*set_, pair.loaded.expose(count, budget), count);
    exposed_to_.store(&budget, std::memory_order_relaxed);
    exposing_ |= 1u << bucket;
    if (!is_listed) own_caches().list_exposing(*this);
    return true;
}

bool Cache::try_conceal() noexcept {
    if (!lock_.try_lock()) return false;
    if (was_closed_) open();
    std::size_t bytes = 0;
    for (; exposing_ != 0; exposing_ &= exposing_ - 1) {
        bytes += pairs_[std::countr_zero(exposing_)].loaded.conceal();
    }
    if (exposed_to() != nullptr) exposed_to()->refund(bytes);
    exposed_to_.store(nullptr, std::memory_order_relaxed);
    lock_.unlock();
    return true;
}

bool Cache::push_exposed(unsigned bucket, void* block, const base::BlockMark* mark) noexcept {
    if (mark != exposed_to() || !lock_.try_lock()) [[unlikely]]
        return false;
    MagazinePair& pair = pairs_[bucket];
    const bool has_room = !was_closed_ && pair.loaded.has_room(pair.usable_capacity());
    if (has_room) [[likely]] {
        pair.loaded.push_exposed(block);
        exposing_ |= 1u << bucket;
    }
    lock_.unlock();
    return has_room;
}

}  // namespace tensorpool::blocks
