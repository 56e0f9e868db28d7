// Reproduces problems that users of other allocators of pinned memory reported.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <tensorpool/device/host_backend.hpp>
#include <tensorpool/device/pinned_allocator.hpp>
#include <tensorpool/device/simulated_backend.hpp>

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

// PyTorch #95823, #150517: sizes were rounded to the next power of two.
TEST(PinnedComplaints, CapacityIsLittleMoreThanRequested) {
    HostBackend backend;
    PinnedAllocator allocator(backend, 0);
    void* const block = allocator.allocate(513 * mib);
    EXPECT_LE(allocator.statistics().capacity_bytes, 514 * mib);
    EXPECT_EQ(allocator.usable_size(block), 513 * mib);
    allocator.deallocate(block);
}

// PyTorch #169160: pinned memory was never released.
TEST(PinnedComplaints, AllFreeMemoryIsReleased) {
    SimulatedBackend backend;
    PinnedAllocator allocator(backend, 0);
    std::vector<void*> blocks;
    for (std::size_t i = 1; i <= 40; ++i) blocks.push_back(allocator.allocate(i * mib / 3));
    const std::size_t held = allocator.statistics().capacity_bytes;
    for (void* const block : blocks) allocator.deallocate(block);
    EXPECT_EQ(allocator.trim(), held);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 0U);
    EXPECT_EQ(backend.calls()[SimulatedCall::allocate_pinned],
              backend.calls()[SimulatedCall::deallocate_pinned]);
}

// PyTorch #132596, in pinned memory: varying shapes made it grow without end.
TEST(PinnedComplaints, VaryingSizesDoNotGrowCapacity) {
    SimulatedBackend backend;
    PinnedAllocator allocator(backend, 0);
    std::mt19937_64 random(7);
    std::vector<std::pair<void*, std::size_t>> blocks;
    std::size_t in_use = 0;
    std::size_t most = 0;
    for (int step = 0; step < 10'000; ++step) {
        if (blocks.size() < 64) {
            const std::size_t bytes = std::size_t{1} << (10 + random() % 14);
            const std::size_t size = bytes + random() % bytes;
            blocks.emplace_back(allocator.allocate(size), size);
            most = std::max(most, in_use += size);
        } else {
            std::swap(blocks[random() % blocks.size()], blocks.back());
            allocator.deallocate(blocks.back().first);
            in_use -= blocks.back().second;
            blocks.pop_back();
        }
        if (blocks.size() == 64) {
            for (int i = 0; i < 32; ++i) {
                allocator.deallocate(blocks.back().first);
                in_use -= blocks.back().second;
                blocks.pop_back();
            }
        }
    }
    // Leaves room for free memory between blocks, and for slabs of an eighth of the capacity.
    EXPECT_LT(static_cast<double>(allocator.statistics().peak_capacity_bytes),
              1.8 * static_cast<double>(most));
    for (const auto& [block, bytes] : blocks) allocator.deallocate(block);
}

// PyTorch #71616: one queue served all streams, and its slow head held back every block.
TEST(PinnedComplaints, SlowStreamHoldsBackOnlyItsOwnBlocks) {
    SimulationOptions options;
    options.schedule = Schedule::lazy;
    options.patience = 0;
    SimulatedBackend backend(options);
    PinnedAllocator allocator(backend, 0);
    StreamHandle slow = nullptr;
    StreamHandle fast = nullptr;
    ASSERT_EQ(backend.create_stream(0, &slow), DeviceStatus::ok);
    ASSERT_EQ(backend.create_stream(0, &fast), DeviceStatus::ok);
    void* memory = nullptr;
    ASSERT_EQ(backend.allocate(0, mib, StorageKind::private_storage, &memory), DeviceStatus::ok);
    const auto use = [&](StreamHandle stream) {
        void* const block = allocator.allocate(mib, stream);
        backend.host_write(block, mib);
        std::memset(block, 1, mib);
        EXPECT_EQ(backend.copy_async(0, CopyKind::host_to_device, memory, block, mib, stream),
                  DeviceStatus::ok);
        allocator.deallocate(block);
        return block;
    };
    void* const held = use(slow);
    void* const first = use(fast);
    for (int step = 0; step < 100; ++step) {
        EXPECT_EQ(backend.synchronize_stream(0, fast), DeviceStatus::ok);
        EXPECT_EQ(use(fast), first);
    }
    EXPECT_NE(held, first);
    EXPECT_EQ(allocator.statistics().capacity_bytes, 2 * mib);
    EXPECT_EQ(backend.synchronize_device(0), DeviceStatus::ok);
}

// PyTorch PR #118550, PR #68906: one lock served all threads. Here, threads take the allocator's
// lock only if their lane has no suitable block; they never look at another lane.
TEST(PinnedComplaints, ThreadsDoNotShareALockOnTheFastPath) {
    SimulatedBackend backend;
    PinnedAllocator allocator(backend, 0);
    constexpr int threads = 4;
    constexpr int steps = 10'000;
    std::vector<std::thread> all;
    for (int number = 0; number < threads; ++number) {
        all.emplace_back([&, number] {
            // Each thread has a size of its own, because there may be fewer lanes than threads.
            const std::size_t bytes = static_cast<std::size_t>(number + 1) * 4096;
            for (int step = 0; step < steps; ++step) {
                allocator.deallocate(allocator.allocate(bytes));
            }
        });
    }
    for (std::thread& thread : all) thread.join();
    const DeviceStatistics statistics = allocator.statistics();
    EXPECT_EQ(statistics.allocations, std::uint64_t{threads} * steps);
    EXPECT_EQ(statistics.deallocations, std::uint64_t{threads} * steps);
    // Another thread's miss may move each parked block to the sets once.
    EXPECT_GE(statistics.parked_hits, std::uint64_t{threads} * (steps - threads));
    EXPECT_EQ(statistics.growths, 1U);
}

}  // namespace
}  // namespace tensorpool
