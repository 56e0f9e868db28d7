// Threads that allocate, copy and free concurrently, and also free each other's blocks.

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/pinned_allocator.hpp>

#include "support/all_bytes.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr int thread_count = 4;
constexpr int steps = 400;

/// Blocks that one thread leaves for another to free.
class Basket {
public:
    void put(void* block) {
        const std::lock_guard guard(mutex_);
        blocks_.push_back(block);
    }
    void* take() {
        const std::lock_guard guard(mutex_);
        if (blocks_.empty()) return nullptr;
        void* const block = blocks_.back();
        blocks_.pop_back();
        return block;
    }

private:
    std::mutex mutex_;
    std::vector<void*> blocks_;
};

/// One thread with a stream and a range of device memory.
class Worker {
public:
    Worker(Backend& backend, PinnedAllocator& allocator, Basket& basket, unsigned number)
        : backend_(backend), allocator_(allocator), basket_(basket), random_(number) {
        EXPECT_EQ(backend_.create_stream(0, &stream_), DeviceStatus::ok);
        EXPECT_EQ(backend_.allocate(0, max_bytes, StorageKind::private_storage, &memory_),
                  DeviceStatus::ok);
    }

    void run() {
        for (int step = 0; step < steps; ++step) {
            do_step(static_cast<unsigned char>(random_()));
            if (step % 50 == 0) (void)allocator_.trim();
        }
        while (void* const block = basket_.take()) allocator_.deallocate(block);
        allocator_.end_stream(stream_);
        EXPECT_EQ(backend_.destroy_stream(0, stream_), DeviceStatus::ok);
        EXPECT_EQ(backend_.deallocate(0, memory_, max_bytes, StorageKind::private_storage),
                  DeviceStatus::ok);
    }

private:
    static constexpr std::size_t max_bytes = 2 * mib;

    /// Writes a block, submits its copy and frees it at once. The copied bytes must be those
    /// written, even if the block is allocated again in the meantime.
    void do_step(unsigned char byte) {
        const std::size_t bytes = 1 + random_() % (random_() % 4 == 0 ? max_bytes : 32 * kib);
        const bool says_at_once = random_() % 2 == 0;
        void* const block = allocator_.try_allocate(bytes, says_at_once ? stream_ : nullptr);
        if (block == nullptr) return;  // the other threads hold all memory
        std::memset(block, byte, bytes);
        EXPECT_EQ(backend_.copy_async(0, CopyKind::host_to_device, memory_, block, bytes, stream_),
                  DeviceStatus::ok);
        if (!says_at_once) allocator_.record_use(block, stream_);
        if (random_() % 2 == 0) {
            basket_.put(block);
            if (void* const other = basket_.take()) allocator_.deallocate(other);
        } else {
            allocator_.deallocate(block);
        }
        std::vector<unsigned char> found(bytes);
        EXPECT_EQ(backend_.synchronize_stream(0, stream_), DeviceStatus::ok);
        EXPECT_EQ(backend_.copy(0, CopyKind::device_to_host, found.data(), memory_, bytes),
                  DeviceStatus::ok);
        EXPECT_TRUE(testing::all_bytes_are(byte, found.data(), bytes));
    }

    Backend& backend_;
    PinnedAllocator& allocator_;
    Basket& basket_;
    std::mt19937 random_;
    StreamHandle stream_ = nullptr;
    void* memory_ = nullptr;
};

void run_threads(const PinnedOptions& options) {
    HostBackend backend;
    PinnedAllocator allocator(backend, 0, options);
    Basket basket;
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < thread_count; ++number) {
        threads.emplace_back([&, number] { Worker(backend, allocator, basket, number).run(); });
    }
    for (std::thread& thread : threads) thread.join();
    while (void* const block = basket.take()) allocator.deallocate(block);
    (void)allocator.trim();
    const DeviceStatistics statistics = allocator.statistics();
    EXPECT_EQ(statistics.allocations, statistics.deallocations);
    EXPECT_EQ(statistics.in_use_bytes, 0U);
    EXPECT_EQ(statistics.requested_in_use_bytes, 0U);
    EXPECT_EQ(statistics.deferred_bytes, 0U);
    EXPECT_EQ(statistics.capacity_bytes, 0U);
    EXPECT_EQ(statistics.slabs, 0U);
    EXPECT_EQ(statistics.free_blocks, 0U);
    EXPECT_TRUE(options.max_bytes == 0 || statistics.peak_capacity_bytes <= options.max_bytes);
}

TEST(PinnedThreads, BlocksAreNotReusedDuringTheirCopy) {
    run_threads({});
}

TEST(PinnedThreads, BlocksAreNotReusedDuringTheirCopyWhenMemoryIsShort) {
    run_threads({.name = "short", .max_bytes = 6 * mib});
}

}  // namespace
}  // namespace tensorpool
