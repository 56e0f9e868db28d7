#include "device/caching/streams/stream_cache.hpp"

#include <thread>

namespace tensorpool::device {

void SpinLock::wait() const noexcept {
    // The core is given away at once: the holder may have lost its own.
    while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
}

Block* StreamCache::take_parked() noexcept {
    // Says that nothing is parked, without a look at each bin: the usual answer of other streams.
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
