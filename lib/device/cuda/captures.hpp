#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "device/cuda/driver_types.hpp"

namespace tensorpool::device::cuda {

/// Which threads capture. The driver, in the relaxed mode that lets other threads go on, refuses
/// them little; what it refuses breaks the capture. So we know before it is asked.
class Captures {
public:
    /// By the calling thread. Throws std::bad_alloc.
    void begin(Stream stream) {
        const std::lock_guard guard(mutex_);
        under_way_.push_back({stream, std::this_thread::get_id()});
        count_.store(under_way_.size(), std::memory_order_relaxed);
    }
    /// By any thread. Does nothing for a stream that none captures.
    void end(Stream stream) noexcept {
        const std::lock_guard guard(mutex_);
        std::erase_if(under_way_,
                      [stream](const UnderWay& capture) { return capture.stream == stream; });
        count_.store(under_way_.size(), std::memory_order_relaxed);
    }
    bool by_this_thread() const noexcept {
        // Relaxed: a thread sees its own `begin`, and no other's matters.
        if (count_.load(std::memory_order_relaxed) == 0) return false;
        const std::lock_guard guard(mutex_);
        return std::any_of(under_way_.begin(), under_way_.end(), [](const UnderWay& capture) {
            return capture.thread == std::this_thread::get_id();
        });
    }

private:
    struct UnderWay {
        Stream stream;
        std::thread::id thread;
    };

    mutable std::mutex mutex_;
    std::vector<UnderWay> under_way_;
    std::atomic<std::size_t> count_ = 0;
};

}  // namespace tensorpool::device::cuda
