// PoolOptions::on_event.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "pool/check_levels.hpp"
#include "pool/fill.hpp"

namespace tensorpool {
namespace {

using Kind = PoolEvent::Kind;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// A copy of an event that owns its strings.
struct Told {
    Kind kind;
    std::string pool;
    std::size_t bytes;
    std::size_t in_use;
    std::size_t capacity;
    std::string limit;
    std::thread::id thread;
};

class PoolEvents : public ::testing::TestWithParam<Checks> {
protected:
    PoolOptions options() {
        return {.name = "mine",
                .max_capacity = 16 * mib,
                .max_allocation = 64 * mib,
                .checks = GetParam(),
                .on_event = [this](const PoolEvent& event) {
                    reported_.push_back({event.kind, event.pool, event.bytes, event.in_use,
                                         event.capacity, event.limit, std::this_thread::get_id()});
                }};
    }
    std::vector<Told> take(Kind kind) {
        std::vector<Told> found;
        for (const Told& event : reported_) {
            if (event.kind == kind) found.push_back(event);
        }
        return found;
    }

    std::vector<Told> reported_;
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolEvents, testing::check_levels(), testing::name_of_level);

TEST_P(PoolEvents, GrowthReportsTheCommittedBytes) {
    MemoryPool pool(options());
    EXPECT_TRUE(reported_.empty());
    void* const block = pool.allocate(mib);
    ASSERT_EQ(reported_.size(), 1U);
    EXPECT_EQ(reported_[0].kind, Kind::growth);
    EXPECT_EQ(reported_[0].pool, "mine");
    EXPECT_EQ(reported_[0].bytes, pool.get_total_capacity());
    EXPECT_EQ(reported_[0].capacity, pool.get_total_capacity());
    EXPECT_EQ(reported_[0].in_use, mib);
    EXPECT_EQ(reported_[0].limit, "");
    pool.deallocate(block);
    for (unsigned i = 0; i < 100; ++i) pool.deallocate(pool.allocate(mib), mib);
    EXPECT_EQ(reported_.size(), 1U);
}

TEST_P(PoolEvents, ReserveAndInitialCapacityAreGrowth) {
    PoolOptions with_capacity = options();
    with_capacity.initial_capacity = 5 * mib;
    MemoryPool pool(with_capacity);
    pool.reserve(7 * mib);
    ASSERT_EQ(reported_.size(), 2U);
    EXPECT_EQ(reported_[0].bytes, 5 * mib);
    EXPECT_EQ(reported_[1].bytes, 2 * mib);
    EXPECT_EQ(reported_[1].kind, Kind::growth);
}

TEST_P(PoolEvents, GiveBackReportsTheReturnedBytes) {
    MemoryPool pool(options());
    pool.deallocate(pool.allocate(5 * mib), 5 * mib);
    const std::size_t given = pool.trim();
    ASSERT_EQ(take(Kind::give_back).size(), 1U);
    EXPECT_EQ(take(Kind::give_back)[0].bytes, given);
    EXPECT_EQ(take(Kind::give_back)[0].capacity, 0U);
    pool.trim();
    EXPECT_EQ(take(Kind::give_back).size(), 1U);
}

TEST_P(PoolEvents, FailureReportsRequestAndLimit) {
    MemoryPool pool(options());
    EXPECT_EQ(pool.try_allocate(64 * mib + 1), nullptr);
    EXPECT_THROW(pool.allocate(17 * mib), AllocationError);
    EXPECT_THROW(pool.reserve(17 * mib), AllocationError);
    const std::vector<Told> failures = take(Kind::failure);
    ASSERT_EQ(failures.size(), 3U);
    EXPECT_EQ(failures[0].bytes, 64 * mib + 1);
    EXPECT_EQ(failures[0].limit, "max_allocation");
    EXPECT_EQ(failures[1].bytes, 17 * mib);
    EXPECT_EQ(failures[1].limit, "max_capacity");
    EXPECT_EQ(failures[2].limit, "max_capacity");
}

TEST_P(PoolEvents, ImpossibleRequestIsNotReportedAsPressure) {
    MemoryPool pool(options());
    EXPECT_EQ(pool.try_allocate(17 * mib), nullptr);
    EXPECT_TRUE(take(Kind::pressure).empty());
}

TEST_P(PoolEvents, CallbackMayUseThePoolWithoutFurtherEvents) {
    MemoryPool* used = nullptr;
    unsigned events = 0;
    PoolOptions with_use = options();
    with_use.on_event = [&](const PoolEvent&) {
        ++events;
        void* const small = used->allocate(100);
        void* const large = used->allocate(3 * mib);
        used->deallocate(small, 100);
        used->deallocate(large);
        (void)used->statistics();
        EXPECT_EQ(used->try_allocate(65 * mib), nullptr);
        used->trim();
    };
    MemoryPool pool(with_use);
    used = &pool;
    void* const block = pool.allocate(mib);
    EXPECT_EQ(events, 1U);
    EXPECT_EQ(pool.get_total_allocated(), mib);
    pool.deallocate(block);
    pool.trim();
    EXPECT_GT(events, 1U);
}

TEST_P(PoolEvents, AreReportedOnTheThreadThatCausedThem) {
    MemoryPool pool(options());
    std::thread::id other;
    std::thread([&] {
        other = std::this_thread::get_id();
        pool.deallocate(pool.allocate(mib));
    }).join();
    EXPECT_EQ(pool.try_allocate(65 * mib), nullptr);
    ASSERT_EQ(reported_.size(), 2U);
    EXPECT_EQ(reported_[0].thread, other);
    EXPECT_EQ(reported_[1].thread, std::this_thread::get_id());
}

TEST_P(PoolEvents, NothingIsPrinted) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    {
        MemoryPool pool(PoolOptions{.max_capacity = mib, .checks = GetParam()});
        testing::free_all(pool, testing::fill(pool, 1000), 1000);
        EXPECT_EQ(pool.try_allocate(2 * mib), nullptr);
        EXPECT_THROW(pool.allocate(SIZE_MAX), AllocationError);
        pool.trim();
    }
    EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// Only with caches is memory parked that has to be gathered first.
TEST(PoolPressure, IsReportedWhenOnlyCachesServeARequest) {
    std::vector<Kind> kinds;
    MemoryPool pool(PoolOptions{
        .max_capacity = 16 * mib, .checks = Checks::off, .on_event = [&](const PoolEvent& event) {
            kinds.push_back(event.kind);
            EXPECT_NE(event.kind, Kind::failure);
        }});
    pool.deallocate(pool.allocate(16 * mib));
    kinds.clear();
    void* const block = pool.allocate(64);
    ASSERT_FALSE(kinds.empty());
    EXPECT_EQ(kinds.front(), Kind::pressure);
    pool.deallocate(block);
}

}  // namespace
}  // namespace tensorpool
