// Pinned allocators that charge the memory that they hold to a budget.

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/device/pinned_allocator.hpp>

#include "simulation/simulated_work.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

PinnedOptions charged_to(Budget& budget) {
    PinnedOptions options;
    options.budget = &budget;
    return options;
}

TEST(PinnedBudget, ChargeIsTheCapacity) {
    test::Device backend;
    Budget process("process");
    Budget budget(process, "pinned");
    {
        PinnedAllocator allocator(backend, 0, charged_to(budget));
        void* const block = allocator.allocate(5 * mib);
        EXPECT_GE(budget.in_use(), 5 * mib);
        EXPECT_EQ(budget.in_use(), allocator.statistics().capacity_bytes);
        allocator.deallocate(block);
        allocator.trim();
        EXPECT_EQ(budget.in_use(), 0U);
        allocator.deallocate(allocator.allocate(1000));
        EXPECT_EQ(process.in_use(), allocator.statistics().capacity_bytes);
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(PinnedBudget, RefusalNamesTheLevelsAndChangesNothing) {
    test::Device backend;
    Budget budget("pinned", {.hard = 8 * mib});
    PinnedAllocator allocator(backend, 0, charged_to(budget));
    void* const block = allocator.allocate(6 * mib);
    try {
        allocator.deallocate(allocator.allocate(4 * mib));
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::budget);
        EXPECT_NE(std::string(error.what()).find("refused by 'pinned': 6 MiB in use of 8 MiB"),
                  std::string::npos)
            << error.what();
    }
    EXPECT_EQ(budget.in_use(), 6 * mib);
    EXPECT_EQ(budget.statistics().refusals, 1U);
    allocator.deallocate(block);
    void* const other = allocator.allocate(8 * mib);
    EXPECT_EQ(budget.in_use(), 8 * mib) << "the free slab made way";
    allocator.deallocate(other);
}

TEST(PinnedBudget, HolderMakesRoomAndMayUseTheAllocator) {
    test::Device backend;
    Budget budget("pinned", {.hard = 8 * mib});
    PinnedAllocator allocator(backend, 0, charged_to(budget));
    struct Cache : MemoryHolder {
        Cache(PinnedAllocator& of) : of(of), block(of.allocate(6 * mib)) {}
        std::size_t available() const noexcept override { return block != nullptr ? 6 * mib : 0; }
        std::size_t give(std::size_t) noexcept override {
            of.deallocate(of.try_allocate(4096));
            of.deallocate(std::exchange(block, nullptr));
            return 6 * mib;
        }
        PinnedAllocator& of;
        void* block;
    } cache(allocator);
    const HolderRegistration registration = budget.add_holder(cache);
    void* const block = allocator.allocate(4 * mib);
    EXPECT_EQ(cache.block, nullptr);
    EXPECT_LE(budget.statistics().peak_bytes, 8 * mib);
    allocator.deallocate(block);
}

TEST(PinnedBudget, BudgetMayEndBeforeItsAllocator) {
    test::Device backend;
    Budget process("process");
    std::optional<Budget> budget(std::in_place, process, "pinned", BudgetLimits{.hard = 4 * mib});
    {
        PinnedAllocator allocator(backend, 0, charged_to(*budget));
        void* const block = allocator.allocate(2 * mib);
        budget.reset();
        void* const beyond = allocator.allocate(16 * mib);
        EXPECT_EQ(process.in_use(), allocator.statistics().capacity_bytes);
        for (void* const each : {block, beyond}) allocator.deallocate(each);
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(PinnedBudget, ManyThreadsNeverExceedTheLimit) {
    test::Device backend;
    Budget budget("pinned", {.hard = 16 * mib});
    PinnedAllocator allocator(backend, 0, charged_to(budget));
    std::vector<std::thread> threads;
    for (std::size_t number = 1; number <= 4; ++number) {
        threads.emplace_back([&, number] {
            for (std::size_t step = 0; step < 300; ++step) {
                allocator.deallocate(allocator.try_allocate((1 + step * number % 10) * mib));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(budget.statistics().peak_bytes, 16 * mib);
    EXPECT_EQ(budget.in_use(), allocator.statistics().capacity_bytes);
}

}  // namespace
}  // namespace tensorpool
