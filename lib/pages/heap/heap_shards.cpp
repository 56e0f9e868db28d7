#include "pages/heap/heap_shards.hpp"

#include <mutex>
#include <new>

#include "platform/platform.hpp"

namespace tensorpool::pages {

HeapShards::~HeapShards() {
    shards_.for_each_other(shards_.first(), discard);
    if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) discard(*marked);
}

HeapShard& HeapShards::own() noexcept {
    return shards_.own([this](unsigned number) noexcept { return make(number); }, discard);
}

HeapShard* HeapShards::marked() noexcept {
    HeapShard* marked = marked_.load(std::memory_order_acquire);
    if (marked != nullptr) return marked;
    const std::lock_guard guard(shards_.first());
    marked = marked_.load(std::memory_order_relaxed);
    if (marked == nullptr) {
        marked = make(AddressSpace::marked_shard);
        marked_.store(marked, std::memory_order_release);
    }
    return marked;
}

// A shard borrows its addresses itself, in whole granules.
HeapShard& HeapShards::of(const Span& span) noexcept {
    const unsigned number = common_.space.shard_of(span.first_page);
    return number == AddressSpace::marked_shard ? *marked_.load(std::memory_order_acquire)
                                                : *shards_.find(number);
}

void HeapShards::report_free(Refusal& refusal) noexcept {
    refusal.knows_free = true;
    refusal.free_pages = 0;
    refusal.largest_free = 0;
    for_each([&](HeapShard& shard) { shard.report_free(refusal); });
}

void HeapShards::lock() noexcept {
    for_each([](HeapShard& shard) { shard.lock(); });
}

void HeapShards::unlock() noexcept {
    // The first shard last: while it is locked, no other shard is made.
    if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) marked->unlock();
    shards_.for_each_other(shards_.first(), [](HeapShard& shard) { shard.unlock(); });
    shards_.first().unlock();
}

HeapShard* HeapShards::make(unsigned number) noexcept {
    void* const memory = platform::map(sizeof(HeapShard), platform::page_bytes());
    if (memory == nullptr) return nullptr;
    common_.totals.record_bytes.fetch_add(sizeof(HeapShard), std::memory_order_relaxed);
    common_.kept.divide();
    return new (memory) HeapShard(common_, number);
}

void HeapShards::discard(HeapShard& shard) noexcept {
    shard.~HeapShard();
    platform::unmap(&shard, sizeof(HeapShard));
}

}  // namespace tensorpool::pages
