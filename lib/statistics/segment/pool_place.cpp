#include "statistics/segment/pool_place.hpp"

#include <mutex>
#include <new>

#include "platform/platform.hpp"
#include "platform/whole_pages.hpp"
#include "statistics/segment/counter_slots.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool::statistics {

struct PoolPlace::Alone {
    PoolRecord record;
    std::mutex mutex;
    FoldedWords<words_of<PoolTotals>> totals;
    FoldedWords<words_of<detail::ThreadCounters>> counters;
};

PoolPlace::PoolPlace(std::string_view name, std::uint64_t limit_bytes) noexcept
    : record_(segment().add_pool(name, limit_bytes)) {
    if (record_ != nullptr) return;
    void* const memory =
        platform::map(platform::whole_pages(sizeof(Alone)), platform::page_bytes());
    if (memory == nullptr) return;
    alone_ = new (memory) Alone{};
    record_ = &alone_->record;
    store_name(record_->name, name);
    record_->limit_bytes.store(limit_bytes, std::memory_order_relaxed);
    record_->id.store(segment().next_id(), std::memory_order_relaxed);
    segment().count_left_out(Segment::Kind::pools, true);
}

PoolPlace::~PoolPlace() {
    if (record_ == nullptr) return;
    if (alone_ == nullptr) {
        segment().remove_pool(*record_);
        return;
    }
    if (PoolRecord* const other = segment().other_pool()) {
        alone_->totals.unfold(as_words(other->totals));
        alone_->counters.unfold(as_words(other->left_out));
    }
    segment().count_left_out(Segment::Kind::pools, false);
    alone_->~Alone();
    platform::unmap(alone_, platform::whole_pages(sizeof(Alone)));
}

void PoolPlace::fold_slow(const CounterSlots& slots) noexcept {
    PoolRecord* const other = segment().other_pool();
    if (other == nullptr) return;
    const std::lock_guard guard(alone_->mutex);
    detail::ThreadCounters sums{};
    slots.for_each([&sums](const detail::ThreadCounters& thread) {
        for (std::size_t i = 0; i < words_of<detail::ThreadCounters>; ++i) {
            detail::add(as_words(sums)[i], as_words(thread)[i].load(std::memory_order_relaxed));
        }
    });
    alone_->totals.fold(as_words(record_->totals), as_words(other->totals));
    alone_->counters.fold(as_words(sums), as_words(other->left_out));
}

void PoolPlace::lock() noexcept {
    if (alone_ != nullptr) alone_->mutex.lock();
}

void PoolPlace::unlock() noexcept {
    if (alone_ != nullptr) alone_->mutex.unlock();
}

}  // namespace tensorpool::statistics
