#include "device/caching/streams/stream_cache.hpp"

#include <thread>

namespace tensorpool::device {

void SpinLock::wait() const noexcept {
    // Yields at once: the holder of the lock may have been preempted.
    while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
}

Block* StreamCache::take_parked() noexcept {
    // Avoids reading each bin in the usual case: other streams mostly have nothing parked.
    if (counters_ == nullptr || counters_->parked_bytes.load(std::memory_order_relaxed) == 0) {
        return nullptr;
    }
    Block* all = nullptr;
    for (Block*& bin : bins_) {
        while (bin != nullptr) {
            Block* const block = bin;
            bin = block->link;
            block->set(BlockState::taken);
            block->link = all;
            all = block;
        }
    }
    detail::add(counters_->parked_bytes,
                0 - counters_->parked_bytes.load(std::memory_order_relaxed));
    return all;
}

namespace {

constexpr std::size_t first_size = 64;  // filled to at most half: 32 streams

}  // namespace

StreamTable::StreamTable() {
    tables_.push_back(std::make_unique<Table>(first_size));
    table_.store(tables_.back().get(), std::memory_order_release);
}

void StreamTable::add(StreamHandle stream, StreamCache& cache) {
    Table& table = *tables_.back();
    if ((count_ + 1) * 2 <= table.mask + 1) {
        put(table, key_of(stream), &cache);
    } else {
        auto larger = std::make_unique<Table>((table.mask + 1) * 2);
        for (std::size_t i = 0; i <= table.mask; ++i) {
            const Entry& entry = table.entries[i];
            const std::uintptr_t key = entry.key.load(std::memory_order_relaxed);
            if (key != 0) put(*larger, key, entry.cache.load(std::memory_order_relaxed));
        }
        put(*larger, key_of(stream), &cache);
        tables_.push_back(std::move(larger));
        table_.store(tables_.back().get(), std::memory_order_release);
    }
    ++count_;
}

void StreamTable::replace(StreamHandle stream, StreamCache& cache) noexcept {
    Table& table = *tables_.back();
    std::size_t at = hash(key_of(stream));
    while (table.entries[at & table.mask].key.load(std::memory_order_relaxed) != key_of(stream)) {
        ++at;
    }
    table.entries[at & table.mask].cache.store(&cache, std::memory_order_release);
}

void StreamTable::put(Table& table, std::uintptr_t key, StreamCache* cache) noexcept {
    std::size_t at = hash(key);
    while (table.entries[at & table.mask].key.load(std::memory_order_relaxed) != 0) ++at;
    Entry& entry = table.entries[at & table.mask];
    entry.cache.store(cache, std::memory_order_release);
    entry.key.store(key, std::memory_order_release);
}

}  // namespace tensorpool::device
