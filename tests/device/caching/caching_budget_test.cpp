// Caching allocators that charge the memory that they hold to a budget.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>

#include "device/caching/caching_device.hpp"
#include "limits/charged.hpp"

namespace tensorpool {
namespace {

using test::device_with;
using test::mib;
using test::Slabs;
using test::unwatched;
using Simulated = test::Device;

CachingOptions charged_to(Budget& budget) {
    CachingOptions options;
    options.budget = &budget;
    return options;
}

class CachingBudget : public ::testing::TestWithParam<Slabs> {
protected:
    std::uint64_t capacity() const { return allocator->statistics().capacity_bytes; }

    Simulated backend{unwatched(device_with(GetParam(), 256 * mib))};
    Budget process{"process"};
    std::optional<Budget> budget{std::in_place, process, "device", BudgetLimits{.hard = 128 * mib}};
    std::unique_ptr<CachingAllocator> allocator =
        std::make_unique<CachingAllocator>(backend, 0, charged_to(*budget));
};

TEST_P(CachingBudget, ChargeIsTheCapacity) {
    void* const small = allocator->allocate(1000);
    void* const large = allocator->allocate(40 * mib);
    EXPECT_GE(capacity(), 40 * mib);
    EXPECT_EQ(budget->in_use(), capacity());
    allocator->deallocate(large);
    allocator->trim();
    EXPECT_LT(capacity(), 40 * mib);
    EXPECT_EQ(budget->in_use(), capacity());
    void* const scalar = allocator->allocate_scalar(std::size_t{4});
    EXPECT_EQ(budget->in_use(), capacity());
    allocator->deallocate(scalar);
    allocator->deallocate(small);
    allocator = nullptr;
    EXPECT_EQ(process.in_use(), 0U);
}

TEST_P(CachingBudget, RefusalNamesTheLevelsAndChangesNothing) {
    void* const block = allocator->allocate(100 * mib);
    const std::uint64_t before = capacity();
    EXPECT_EQ(allocator->try_allocate(60 * mib), nullptr);
    try {
        (void)allocator->allocate(60 * mib);
        ADD_FAILURE();
    } catch (const DeviceAllocationError& error) {
        const std::string text = error.what();
        EXPECT_EQ(error.failure().cause, DeviceAllocationFailure::Cause::budget);
        for (const char* const part :
             {"cause: the hard limit of a budget", "raise the limit of the budget",
              "holders gave 0 B", "refused by 'device': 100 MiB in use of 128 MiB",
              "'process': 100 MiB in use of no limit; 'device' 100 MiB"}) {
            EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
        }
    }
    EXPECT_EQ(budget->statistics().refusals, 2U);
    EXPECT_EQ(capacity(), before);
    EXPECT_EQ(budget->in_use(), before);
    allocator->deallocate(block);
}

TEST_P(CachingBudget, FreeMemoryMakesWayBeforeARefusal) {
    for (const std::size_t bytes : {30 * mib, 70 * mib}) {
        allocator->deallocate(allocator->allocate(bytes, backend.stream()));
    }
    EXPECT_GE(capacity(), 100 * mib);
    void* const block = allocator->allocate(120 * mib);
    EXPECT_LE(budget->statistics().peak_bytes, 128 * mib);
    EXPECT_EQ(budget->in_use(), capacity());
    allocator->deallocate(block);
}

TEST_P(CachingBudget, FailureOfTheDeviceRefunds) {
    budget->set_limits({});
    void* const block = allocator->allocate(200 * mib);
    EXPECT_EQ(allocator->try_allocate(200 * mib), nullptr) << "the device has 256 MiB";
    EXPECT_EQ(budget->in_use(), capacity());
    allocator->deallocate(block);
    EXPECT_EQ(budget->statistics().refusals, 0U);
}

TEST_P(CachingBudget, ReserveForCaptureIsCharged) {
    allocator->reserve_for_capture(20 * mib);
    EXPECT_EQ(budget->in_use(), 20 * mib);
    EXPECT_THROW(allocator->reserve_for_capture(200 * mib), DeviceAllocationError);
    EXPECT_EQ(budget->in_use(), 20 * mib);
}

/// Frees blocks of an allocator when the budget needs memory, after it has allocated one.
class Cache : public MemoryHolder {
public:
    Cache(CachingAllocator& allocator, Budget& budget, std::size_t count) : allocator_(allocator) {
        for (std::size_t i = 0; i != count; ++i) blocks_.push_back(allocator.allocate(20 * mib));
        registration_ = budget.add_holder(*this);
    }
    ~Cache() override {
        registration_ = {};
        give(SIZE_MAX);
    }
    std::size_t available() const noexcept override { return blocks_.size() * 20 * mib; }
    std::size_t give(std::size_t bytes) noexcept override {
        allocator_.deallocate(allocator_.try_allocate(4096));
        std::size_t given = 0;
        for (; given < bytes && !blocks_.empty(); given += 20 * mib) {
            allocator_.deallocate(blocks_.back());
            blocks_.pop_back();
        }
        return given;
    }
    std::size_t size() const noexcept { return blocks_.size(); }

private:
    CachingAllocator& allocator_;
    std::vector<void*> blocks_;
    HolderRegistration registration_;
};

TEST_P(CachingBudget, HolderFreesBlocksOfTheSameAllocatorBeforeARefusal) {
    Cache cache(*allocator, *budget, 4);
    void* const block = allocator->allocate(60 * mib);
    EXPECT_LT(cache.size(), 4U);
    EXPECT_GE(cache.size(), 1U) << "it gives what is missing";
    EXPECT_LE(budget->statistics().peak_bytes, 128 * mib);
    EXPECT_EQ(budget->in_use(), capacity());
    allocator->deallocate(block);
}

TEST_P(CachingBudget, HolderOfAnotherAllocatorMakesRoom) {
    Budget part(process, "cache");
    process.set_limits({.hard = 128 * mib});
    CachingAllocator other(backend, 0, charged_to(part));
    Cache cache(other, part, 4);
    struct Trimming : MemoryHolder {
        explicit Trimming(CachingAllocator& of) : of(of) {}
        std::size_t available() const noexcept override { return SIZE_MAX; }
        std::size_t give(std::size_t) noexcept override { return of.trim(); }
        CachingAllocator& of;
    } trimming(other);
    const HolderRegistration registration = part.add_holder(trimming, {.priority = 1});
    void* const block = allocator->allocate(90 * mib);
    EXPECT_LE(process.statistics().peak_bytes, 128 * mib);
    allocator->deallocate(block);
}

TEST_P(CachingBudget, SoftLimitMakesHoldersGiveFirst) {
    budget->set_limits({.soft = 100 * mib});
    Cache cache(*allocator, *budget, 4);
    void* const block = allocator->allocate(60 * mib);
    EXPECT_LT(cache.size(), 4U);
    void* const beyond = allocator->allocate(100 * mib);
    EXPECT_EQ(cache.size(), 0U);
    EXPECT_GE(budget->in_use(), 160 * mib) << "a soft limit refuses nothing";
    for (void* const each : {block, beyond}) allocator->deallocate(each);
}

TEST_P(CachingBudget, RequestOfACallbackAsksNoHolderAndMayPassTheSoftLimit) {
    budget->set_limits({.soft = 30 * mib, .hard = 128 * mib});
    Cache cache(*allocator, *budget, 1);
    std::size_t size_in_callback = 0;
    bool got = false;
    allocator->add_callback("nested", [&](const AllocatorEvent& event) {
        if (event.kind != AllocatorEvent::Kind::allocation_failed) return;
        void* const block = allocator->try_allocate(40 * mib, backend.stream());
        got = block != nullptr;
        size_in_callback = cache.size();
        allocator->deallocate(block);
    });
    EXPECT_EQ(allocator->try_allocate(200 * mib), nullptr);
    EXPECT_TRUE(got);
    EXPECT_EQ(size_in_callback, 1U);
    allocator->remove_callback("nested");
}

TEST_P(CachingBudget, BudgetMayEndBeforeItsAllocator) {
    void* const block = allocator->allocate(20 * mib);
    budget.reset();
    EXPECT_EQ(process.in_use(), capacity());
    void* const beyond = allocator->allocate(150 * mib);
    EXPECT_NE(beyond, nullptr) << "the limit ended with the budget";
    for (void* const each : {block, beyond}) allocator->deallocate(each);
    allocator = nullptr;
    EXPECT_EQ(process.in_use(), 0U);
}

TEST_P(CachingBudget, ManyThreadsNeverExceedTheLimit) {
    std::vector<std::thread> threads;
    for (std::size_t number = 1; number <= 4; ++number) {
        threads.emplace_back([&, number] {
            const StreamHandle stream = backend.stream();
            for (std::size_t step = 0; step < 200; ++step) {
                allocator->deallocate(
                    allocator->try_allocate((1 + step * number % 60) * mib, stream));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_LE(budget->statistics().peak_bytes, 128 * mib);
    EXPECT_EQ(budget->in_use(), capacity());
}

INSTANTIATE_TEST_SUITE_P(Slabs, CachingBudget, ::testing::Values(Slabs::plain, Slabs::expandable),
                         [](const auto& of) {
                             return of.param == Slabs::plain ? "PlainSlabs" : "ExpandableSlabs";
                         });

TEST(CachingBudgetAsleep, SleepRefundsAndWakeIsCharged) {
    Simulated backend{unwatched(device_with(Slabs::expandable, 256 * mib))};
    Budget budget("device", {.hard = 64 * mib});
    CachingAllocator allocator(backend, 0, charged_to(budget));
    void* const block = allocator.allocate(40 * mib);
    const std::size_t before = budget.in_use();
    (void)allocator.sleep(SleepContent::kept);
    EXPECT_EQ(budget.in_use(), 0U);
    {
        Budget part(budget, "part");
        const testing::Charged other(part, 60 * mib);
        try {
            allocator.wake();
            ADD_FAILURE();
        } catch (const DeviceError& error) {
            EXPECT_NE(std::string(error.what()).find("refused by 'device'"), std::string::npos)
                << error.what();
        }
        EXPECT_EQ(budget.in_use(), 60 * mib);
    }
    allocator.wake();
    EXPECT_EQ(budget.in_use(), before);
    EXPECT_EQ(budget.in_use(), allocator.statistics().capacity_bytes);
    allocator.deallocate(block);
}

}  // namespace
}  // namespace tensorpool
