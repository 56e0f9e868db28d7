#include "device/caching/streams/spin_lock.hpp"

#include <thread>

namespace tensorpool::device {

void SpinLock::wait() const noexcept {
    // The core is given away at once: the holder may have lost its own.
    while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
}

}  // namespace tensorpool::device
