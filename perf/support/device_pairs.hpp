#pragma once

/// Pairs of an allocation and a free of device memory, and the least work for them.

#include <atomic>
#include <cstddef>
#include <thread>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/device/backend.hpp>

#include "support/barrier.hpp"
#include "support/turns.hpp"

namespace perf {

/// The least work for an allocator whose streams several threads may use: lock and unlock twice,
/// count, and find the block at an address.
struct alignas(64) Floor {
    void* allocate(std::size_t bytes, tensorpool::StreamHandle) {
        const Held held(lock);
        void* const block = parked;
        parked = nullptr;
        tensorpool::detail::add(counters[0], 1);
        tensorpool::detail::add(counters[1], bytes);
        return block;
    }
    void deallocate(void* block) {
        const Held held(lock);
        parked = block;
        tensorpool::detail::add(counters[2], 1);
        tensorpool::detail::add(counters[3], 1);
    }

    struct Held {
        explicit Held(std::atomic<bool>& taken) : lock(taken) {
            while (lock.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
        }
        ~Held() { lock.store(false, std::memory_order_release); }
        std::atomic<bool>& lock;
    };
    std::atomic<bool> lock = false;
    void* parked = this;
    alignas(64) tensorpool::detail::Counter counters[4] = {};
};

/// Returns nanoseconds per pair of calls.
template <class Allocator>
double pair_ns(Allocator& allocator, std::size_t pairs, std::size_t bytes,
               tensorpool::StreamHandle stream) {
    const double seconds = perf::seconds_of([&] {
        for (std::size_t i = 0; i < pairs; ++i) {
            std::size_t requested = bytes;
            perf::opaque(requested);
            void* block = allocator.allocate(requested, stream);
            perf::opaque(block);
            allocator.deallocate(block);
        }
    });
    return seconds * 1e9 / static_cast<double>(pairs);
}

}  // namespace perf
