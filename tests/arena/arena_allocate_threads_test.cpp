// Many threads in one arena. Each test puts the arena under load and checks the outcome to the
// byte.

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "arena/arena_test.hpp"
#include "arena/arena_threads.hpp"
#include "base/alignment.hpp"
#include "pages/random.hpp"
#include "platform/platform.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::Block;
using testing::block_of;
using testing::Blocks;
using testing::in_order;
using testing::kib;
using testing::mib;
using testing::on_threads;
using testing::rounded;
using testing::sum_of;
using testing::write_pattern;
using testing::wrong_in;

constexpr unsigned thread_count = 6;

/// Blocks that one thread publishes to a thread that checks them.
class Shown {
public:
    void add(const Block& block) {
        const std::lock_guard guard(mutex_);
        blocks_.push_back(block);
    }
    Blocks some(testing::Random& random) const {
        const std::lock_guard guard(mutex_);
        Blocks chosen;
        for (int i = 0; i < 20 && !blocks_.empty(); ++i) {
            chosen.push_back(blocks_[random.below(blocks_.size())]);
        }
        return chosen;
    }

private:
    mutable std::mutex mutex_;
    Blocks blocks_;
};

TEST(ArenaThreads, GrowthByTinyStepsLeavesBlocksReadable) {
    ArenaOptions options = bare_options();
    options.max_capacity = 512 * mib;
    Arena arena(options);
    const unsigned count = testing::sanitized() ? 1500 : 6000;
    std::vector<Blocks> given(thread_count);
    Shown shown;
    std::atomic<std::size_t> wrong = 0;
    std::atomic<unsigned> working = thread_count;
    std::thread reads([&] {
        testing::Random random(99);
        while (working != 0) wrong += wrong_in(shown.some(random));
    });
    on_threads(thread_count, [&](unsigned number) {
        testing::Random random(number);
        for (unsigned i = 0; i < count; ++i) {
            const std::size_t bytes = random.log_uniform(1, 9000);
            const Block block = block_of(arena, bytes, random, number * count + i);
            given[number].push_back(block);
            if (i % 8 == 0) shown.add(block);
        }
        --working;
    });
    reads.join();
    const Blocks all = in_order(given);
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(wrong_in(all), 0U);
    EXPECT_EQ(sum_of(all), arena.used()) << "no byte between blocks";
    EXPECT_EQ(arena.peak(), arena.used());
    EXPECT_GT(arena.statistics().growths * platform::page_bytes(), 100U * 4096);
    EXPECT_EQ(arena.statistics().refusals, 0U);
}

TEST(ArenaThreads, AlignmentsHoldAndCostOnlyPadding) {
    ArenaOptions options = bare_options();
    options.max_capacity = 512 * mib;
    Arena arena(options);
    std::vector<Blocks> given(thread_count);
    std::atomic<std::size_t> misaligned = 0;
    std::atomic<std::size_t> padding = 0;
    on_threads(thread_count, [&](unsigned number) {
        testing::Random random(number);
        for (unsigned i = 0; i < 1000; ++i) {
            const std::size_t bytes = random.log_uniform(1, 5000);
            const std::size_t alignment = std::size_t{1} << random.below(15);
            auto* const at = static_cast<std::byte*>(arena.allocate(bytes, alignment));
            misaligned += base::is_aligned(at, alignment) ? 0 : 1;
            padding += alignment > 64 ? alignment - 64 : 0;
            write_pattern(at, bytes, number * 1000 + i);
            given[number].push_back({at, bytes, number * 1000 + i});
        }
    });
    const Blocks all = in_order(given);
    EXPECT_EQ(misaligned, 0U);
    EXPECT_EQ(wrong_in(all), 0U);
    EXPECT_GE(arena.used(), sum_of(all));
    EXPECT_LE(arena.used(), sum_of(all) + padding);
    EXPECT_EQ(all.back().at + rounded(all.back()), all.front().at + arena.used());
}

/// Threads that fill an arena until nearly all requests fail, round after round.
class FullArena : public ::testing::TestWithParam<std::size_t> {
protected:
    static constexpr unsigned requests = 300;

    /// Fills the arena, checks that no byte is lost, and resets it.
    void fill_in_rounds(Arena& arena, unsigned rounds) {
        for (unsigned round = 0; round < rounds; ++round) {
            std::vector<Blocks> given(thread_count);
            on_threads(thread_count, [&](unsigned number) {
                testing::Random random(round * 100 + number);
                for (unsigned i = 0; i < requests; ++i) {
                    const std::size_t bytes = random.one_in(4) ? random.log_uniform(1, max_bytes)
                                                               : 1 + random.below(max_bytes);
                    const Block block = block_of(arena, bytes, random, number * requests + i);
                    if (block.at != nullptr) given[number].push_back(block);
                }
            });
            const Blocks all = in_order(given);
            ASSERT_EQ(wrong_in(all), 0U);
            ASSERT_EQ(sum_of(all), arena.used()) << "round " << round << ": no byte is lost";
            ASSERT_LE(arena.used(), capacity);
            failed_ += thread_count * requests - all.size();
            // The rest can be allocated, to the last byte.
            if (arena.used() < capacity) {
                ASSERT_NE(arena.allocate(capacity - arena.used()), nullptr);
            }
            ASSERT_EQ(arena.try_allocate(1), nullptr);
            arena.reset();
        }
    }

    static constexpr std::size_t capacity = 512 * kib;
    static constexpr std::size_t max_bytes = 40'000;
    std::size_t failed_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Steps, FullArena, ::testing::Values(1, 64 * kib, mib),
                         [](const auto& param) { return "Step" + std::to_string(param.param); });

TEST_P(FullArena, FailuresLoseNoByteAndLeaveTheArenaUsable) {
    ArenaOptions options = bare_options();
    options.max_capacity = capacity;
    options.growth.step = GetParam();
    options.retain = 64 * kib;
    Arena arena(options);
    const unsigned rounds = testing::sanitized() ? 20 : 150;
    fill_in_rounds(arena, rounds);
    EXPECT_GT(failed_, rounds * thread_count * requests / 2) << "most fail";
    EXPECT_GE(arena.statistics().refusals, failed_);
}

TEST_P(FullArena, OverABufferLosesNoByteEither) {
    alignas(64) static std::byte buffer[capacity];
    Arena arena = Arena::over(buffer);
    fill_in_rounds(arena, testing::sanitized() ? 10 : 50);
}

// Two threads get nearly all memory, while two others request more than can ever fit. If a thread
// sleeps through 64 cancellations, its claim is lost until a release (CancelledClaims). The arena
// has room for some of that.
TEST(ArenaThreads, FittingRequestsAreServedWhileLargerOnesFail) {
    ArenaOptions options = bare_options();
    options.max_capacity = 8 * mib;
    Arena arena(options);
    const unsigned count = 8 * mib / 64 / 2 - 512;
    std::vector<Blocks> given(4);
    std::atomic<unsigned> served = 0;
    std::atomic<unsigned> working = 2;
    on_threads(4, [&](unsigned number) {
        if (number < 2) {
            for (unsigned i = 0; i < count; ++i) {
                auto* const at = static_cast<std::byte*>(arena.allocate(64));
                given[number].push_back({at, 64, i});
            }
            --working;
            return;
        }
        while (working != 0) {
            EXPECT_THROW(arena.allocate(8 * mib + 1), AllocationError);
            ++served;
        }
    });
    const Blocks all = in_order(given);
    EXPECT_EQ(sum_of(all), 2 * 64 * std::size_t{count}) << "no request failed";
    EXPECT_GE(arena.used(), sum_of(all));
    EXPECT_LE(arena.used(), 8 * mib);
}

TEST(ArenaThreads, AllocationsAreCountedExactlyByMoreThreadsThanHaveWordsOfTheirOwn) {
    constexpr unsigned threads = detail::ArenaWords::counting_threads + 14;
    ArenaOptions options = bare_options();
    options.max_capacity = 1 * mib;
    Arena arena(std::move(options));
    for (unsigned round = 1; round <= 3; ++round) {
        std::atomic<std::uint64_t> granted = 0;
        const std::uint64_t before = arena.statistics().allocations;
        std::barrier all_count(threads);
        on_threads(threads, [&](unsigned number) {
            std::uint64_t own = 0;
            for (std::size_t i = 0; i < 500; ++i) {
                if (i == 1) all_count.arrive_and_wait();  // every thread has a number by then
                // Quick, large alignments, and requests that fail once the arena is full.
                own += arena.try_allocate(1 + i % 90) != nullptr ? 1 : 0;
                if (i % 10 == number % 10) {
                    own += arena.try_allocate(64, 4096) != nullptr ? 1 : 0;
                }
                try {
                    own += arena.allocate(1 + i % 100) != nullptr ? 1 : 0;
                } catch (const AllocationError&) {
                }
            }
            granted += own;
        });
        EXPECT_EQ(arena.statistics().allocations - before, granted);
        EXPECT_GT(arena.statistics().refusals, 0U);
        arena.reset();
        EXPECT_EQ(arena.statistics().releases, round);
    }
}

}  // namespace
}  // namespace tensorpool
