// Background trimming, with a clock that the test advances.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"
#include "platform/threads/own_thread.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/fill.hpp"
#include "pool/pool.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t period_ns = 10 * second_ns;
constexpr std::uint64_t min_pause_ns = second_ns / 100;

class PoolBackground : public ::testing::Test {
protected:
    // The background thread would make passes at its own times.
    PoolBackground() { allow_background_trimmer(false); }

    static PoolOptions options() {
        return {
            .name = "calm", .retain = {.background = BackgroundTrim::on}, .checks = Checks::off};
    }
    static std::uint64_t look(std::uint64_t at_ns) {
        return detail::background_trimmer().look(at_ns);
    }
    static void use_and_free(MemoryPool& pool) {
        for (const std::size_t bytes : testing::sizes) {
            for (void* const block : testing::touched_blocks(pool, 8 * mib, bytes)) {
                pool.deallocate(block, bytes);
            }
        }
    }
};

TEST_F(PoolBackground, FreeMemoryIsReturnedAfterAPeriodWithoutCalls) {
    MemoryPool pool(options());
    use_and_free(pool);
    const std::size_t before = pool.get_total_capacity();
    ASSERT_GE(before, 8 * mib);
    EXPECT_EQ(look(0), period_ns / 20);
    EXPECT_EQ(look(period_ns - 1), min_pause_ns);
    EXPECT_EQ(pool.get_total_capacity(), before);
    EXPECT_EQ(look(period_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_F(PoolBackground, ACallRestartsThePeriod) {
    MemoryPool pool(options());
    use_and_free(pool);
    look(0);
    pool.deallocate(pool.allocate(64), 64);  // inline
    look(period_ns - 1);
    look(period_ns);
    EXPECT_NE(pool.get_total_capacity(), 0U);
    look(2 * period_ns - 1);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_F(PoolBackground, NoPassIsDueBeforeTheNextCall) {
    MemoryPool pool(options());
    use_and_free(pool);
    look(0);
    EXPECT_EQ(look(period_ns), platform::no_timeout);
    EXPECT_EQ(look(5 * period_ns), platform::no_timeout);
    use_and_free(pool);
    EXPECT_NE(look(6 * period_ns), platform::no_timeout);
    EXPECT_EQ(look(7 * period_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_F(PoolBackground, ClockThatJumpsDelaysNoTrim) {
    constexpr std::uint64_t hour_ns = 3600 * second_ns;
    MemoryPool pool(options());
    for (const std::uint64_t now : {hour_ns, 100 * hour_ns, 2 * hour_ns, std::uint64_t{0},
                                    UINT64_MAX / 2, UINT64_MAX - hour_ns, hour_ns}) {
        use_and_free(pool);
        EXPECT_LE(look(now), period_ns / 20) << now;
        EXPECT_EQ(look(now + period_ns), platform::no_timeout) << now;
        EXPECT_EQ(pool.get_total_capacity(), 0U) << now;
    }
}

TEST_F(PoolBackground, ClockThatGoesBackEndsAnIdlePeriod) {
    MemoryPool pool(options());
    use_and_free(pool);
    look(100 * period_ns);
    EXPECT_EQ(look(period_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_F(PoolBackground, BlocksInUseStay) {
    MemoryPool pool(options());
    auto* const small = static_cast<unsigned char*>(pool.allocate(1000));
    auto* const large = static_cast<unsigned char*>(pool.allocate(3 * mib));
    std::memset(small, 1, 1000);
    std::memset(large, 2, 3 * mib);
    use_and_free(pool);
    look(0);
    look(period_ns);
    EXPECT_LT(pool.get_total_capacity(), 4 * mib);
    EXPECT_EQ(small[0] + small[999], 2);
    EXPECT_EQ(large[0] + large[3 * mib - 1], 4);
    pool.deallocate(small, 1000);
    pool.deallocate(large, 3 * mib);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST_F(PoolBackground, ReservedMemoryStays) {
    MemoryPool pool(options());
    pool.reserve(16 * mib);
    use_and_free(pool);
    look(0);
    look(period_ns);
    EXPECT_EQ(pool.get_total_capacity(), 16 * mib);
}

TEST_F(PoolBackground, PoolWithoutTheOptionKeepsItsMemory) {
    MemoryPool pool(PoolOptions{.checks = Checks::off});
    use_and_free(pool);
    const std::size_t before = pool.get_total_capacity();
    EXPECT_EQ(look(0), platform::no_timeout);
    EXPECT_EQ(look(period_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), before);
}

TEST_F(PoolBackground, AutomaticModeLeavesLittleFreeMemory) {
    PoolOptions automatic = options();
    automatic.retain.background = BackgroundTrim::automatic;
    MemoryPool pool(automatic);
    use_and_free(pool);
    const std::size_t before = pool.get_total_capacity();
    EXPECT_EQ(look(0), period_ns);
    EXPECT_EQ(look(period_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), before);
}

// What caches take ahead of use counts as free, and so do blocks that threads keep.
TEST_F(PoolBackground, AutomaticModeReturnsMuchFreeMemory) {
    PoolOptions automatic = options();
    automatic.retain.background = BackgroundTrim::automatic;
    MemoryPool pool(automatic);
    for (void* const block : testing::touched_blocks(pool, 80 * mib, mib)) {
        pool.deallocate(block, mib);
    }
    EXPECT_EQ(look(0), period_ns / 20);
    EXPECT_EQ(look(period_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

// It cannot be seen when others take what is available.
TEST_F(PoolBackground, PassesAreCloserTheLessIsAvailable) {
    MemoryPool pool(options());
    for (void* const block : testing::touched_blocks(pool, 80 * mib, mib)) {
        pool.deallocate(block, mib);
    }
    const auto pause_with = [](std::size_t available_bytes) {
        std::uint64_t pause_ns = 0;
        detail::pool_list().visit([&](detail::Pool& one) {
            pages::Changes changes;
            if (one.parts().options.name != "calm") return;
            pause_ns = one.look_in_background({.available_bytes = available_bytes}, changes);
        });
        return pause_ns;
    };
    EXPECT_EQ(pause_with(SIZE_MAX), period_ns / 20);
    EXPECT_EQ(pause_with(400 * mib), 200 * mib);
    EXPECT_EQ(pause_with(100 * mib), 50 * mib);
}

TEST_F(PoolBackground, PassesAreAtLeastTenMillisecondsApart) {
    PoolOptions with_short_period = options();
    with_short_period.retain.milliseconds = 2;
    MemoryPool pool(with_short_period);
    use_and_free(pool);
    EXPECT_EQ(look(0), min_pause_ns);
    EXPECT_EQ(look(min_pause_ns), platform::no_timeout);
    EXPECT_EQ(pool.get_total_capacity(), 0U);
}

TEST_F(PoolBackground, EventsAreReportedOnTheTrimmersThread) {
    std::size_t given_back = 0;
    PoolOptions reporting = options();
    reporting.on_event = [&](const PoolEvent& event) {
        if (event.kind == PoolEvent::Kind::give_back) given_back += event.bytes;
    };
    MemoryPool pool(reporting);
    use_and_free(pool);
    const std::size_t before = pool.get_total_capacity();
    look(0);
    look(period_ns);
    EXPECT_EQ(given_back, before);
}

TEST_F(PoolBackground, PagesOfFreeBlocksBesideBlocksInUseAreReturned) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the tool closes free blocks";
    constexpr std::size_t bytes = std::size_t{64} << 10;
    if (platform::page_bytes() >= bytes) GTEST_SKIP() << "a page may hold parts of two blocks";
    MemoryPool pool(options());
    std::vector<unsigned char*> blocks;
    for (int i = 0; i < 8; ++i) {
        blocks.push_back(static_cast<unsigned char*>(pool.allocate(bytes)));
        std::memset(blocks.back(), 7, bytes);
    }
    for (std::size_t i = 1; i < 8; i += 2) pool.deallocate(blocks[i], bytes);
    look(0);
    EXPECT_EQ(blocks[1][bytes / 2], 7);
    look(period_ns);
    EXPECT_EQ(blocks[0][bytes / 2], 7);
    EXPECT_EQ(blocks[1][bytes / 2], 0) << "a page that was returned reads as zero";
    for (std::size_t i = 0; i < 8; i += 2) pool.deallocate(blocks[i], bytes);
}

}  // namespace
}  // namespace tensorpool
