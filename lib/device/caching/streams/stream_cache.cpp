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

}  // namespace tensorpool::device
