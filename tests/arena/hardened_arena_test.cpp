// Arenas with Checks::hardened.

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace {

class HardenedArena : public ::testing::TestWithParam<Sharing> {
protected:
    void SetUp() override {
        if (platform::has_memory_tool()) GTEST_SKIP() << "the tool closes released memory";
    }
    static ArenaOptions options() {
        ArenaOptions options;
        options.name = "mine";
        options.checks = Checks::hardened;
        options.sharing = GetParam();
        return options;
    }
    char* filled(Arena& arena, std::size_t bytes, std::size_t alignment = 64) {
        void* const block = arena.allocate(bytes, alignment);
        std::memset(block, 7, bytes);
        return static_cast<char*>(block);
    }
};
using HardenedArenaDeathTest = HardenedArena;

TEST_P(HardenedArena, PhasesReuseMemoryAndNothingIsReported) {
    Arena arena(options());
    for (int phase = 0; phase != 3; ++phase) {
        const ArenaScope scope(arena);
        for (const std::size_t bytes : {1, 63, 64, 100, 300'000, 20'000'000}) {
            filled(arena, bytes);
            filled(arena, bytes, 4096);
            const PooledAllocation handle(arena, bytes);
            std::memset(handle.get(), 7, bytes);
        }
        PooledAllocation outlived(arena, 100);
        filled(arena, 100);
        outlived.reset();
    }
    EXPECT_EQ(arena.used(), 0);
    arena.trim();
    filled(arena, 1'000'000);
}

TEST_P(HardenedArena, MeasuringArenaMeasuresWhatARealOneNeeds) {
    Arena measuring = Arena::measuring(options());
    Arena real(options());
    for (const std::size_t bytes : {1, 64, 100, 300'000}) {
        (void)measuring.allocate(bytes);
        (void)real.allocate(bytes);
    }
    EXPECT_EQ(measuring.peak(), real.peak());
}

TEST_P(HardenedArena, ServesRequestsOfTheLargestAllowedSize) {
    ArenaOptions limited = options();
    limited.max_allocation = 4096;
    Arena arena(limited);
    filled(arena, 4096);
    EXPECT_THROW((void)arena.allocate(4097), AllocationError);
}

TEST_P(HardenedArena, BufferKeepsItsContentWhenTheArenaEnds) {
    alignas(64) static std::byte buffer[4096];
    std::memset(buffer, 9, sizeof buffer);
    {
        Arena arena = Arena::over(buffer, options());
        filled(arena, 100);
        arena.reset();
        filled(arena, 1000);
    }
    EXPECT_EQ(buffer[999], std::byte{7});
}

TEST_P(HardenedArenaDeathTest, WriteBehindABlockStopsAtItsRelease) {
    Arena arena(options());
    const Arena::Mark mark = arena.mark();
    char* const block = filled(arena, 100);
    filled(arena, 100);
    const char saved = std::exchange(block[100], char(0));
    const auto stopped = ::testing::KilledBySignal(SIGABRT);
    EXPECT_EXIT(arena.release_to(mark), stopped, "overrun ptr=.* requested=100 pool=mine");
    EXPECT_EXIT(arena.reset(), stopped, "overrun ptr=.* requested=100 pool=mine");
    block[100] = saved;
}

TEST_P(HardenedArenaDeathTest, WriteBehindABlockStopsAtTheEndOfItsHandle) {
    Arena arena(options());
    PooledAllocation handle(arena, 100);
    char* const block = static_cast<char*>(handle.get());
    const char saved = std::exchange(block[100], char(0));
    EXPECT_EXIT(handle.reset(), ::testing::KilledBySignal(SIGABRT),
                "overrun ptr=.* requested=100 pool=mine");
    block[100] = saved;
}

TEST_P(HardenedArenaDeathTest, WriteBehindABlockStopsAtTheEndOfTheArena) {
    auto arena = std::make_unique<Arena>(options());
    char* const block = filled(*arena, 100);
    const char saved = std::exchange(block[100], char(0));
    EXPECT_EXIT(arena.reset(), ::testing::KilledBySignal(SIGABRT),
                "overrun ptr=.* requested=100 pool=mine");
    block[100] = saved;
}

TEST_P(HardenedArenaDeathTest, WriteIntoReleasedMemoryStopsAtItsNextUse) {
    Arena arena(options());
    char* const block = filled(arena, 100);
    arena.reset();
    block[99] = 1;
    EXPECT_EXIT((void)arena.allocate(100), ::testing::KilledBySignal(SIGABRT),
                "write-after-free ptr=.* pool=mine");
    block[99] = 0;
    filled(arena, 100);
}

TEST_P(HardenedArena, ThreadsAllocateAndEndHandlesAtOnce) {
    if (GetParam() == Sharing::one_thread) GTEST_SKIP() << "belongs to one thread";
    constexpr std::size_t blocks = 200;
    Arena arena(options());
    for (int phase = 0; phase != 20; ++phase) {
        std::vector<std::thread> threads;
        for (char mark = 1; mark != 5; ++mark) {
            threads.emplace_back([&, mark] {
                std::vector<std::string_view> own;
                for (std::size_t i = 1; i != blocks; ++i) {
                    char* const block = filled(arena, i);
                    std::memset(block, mark, i);
                    own.emplace_back(block, i);
                    const PooledAllocation handle(arena, 2 * i);
                    std::memset(handle.get(), 7, 2 * i);
                }
                for (const std::string_view& block : own) {
                    EXPECT_EQ(block.find_first_not_of(mark), block.npos) << block.size();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_GE(arena.used(), 4 * (blocks - 1) * 64);
        arena.reset();
        EXPECT_EQ(arena.used(), 0U);
    }
}

constexpr auto sharings = [] {
    return ::testing::Values(Sharing::any_thread, Sharing::one_thread);
};
constexpr auto name_of = [](const auto& one) {
    return one.param == Sharing::any_thread ? "AnyThread" : "OneThread";
};
INSTANTIATE_TEST_SUITE_P(Sharing, HardenedArena, sharings(), name_of);
INSTANTIATE_TEST_SUITE_P(Sharing, HardenedArenaDeathTest, sharings(), name_of);

}  // namespace
}  // namespace tensorpool
