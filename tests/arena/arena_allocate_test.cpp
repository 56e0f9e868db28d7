// The growth of an arena by its requests, and the events that it reports.

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "arena/arena_test.hpp"
#include "limits/commit_budget.hpp"
#include "pages/failing_system.hpp"
#include "pages/random.hpp"
#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace {

using platform::page_bytes;
using testing::ArenaUsage;
using testing::bare_options;
using testing::Failing;
using testing::gib;
using testing::holds;
using testing::kib;
using testing::message_of;
using testing::mib;
using testing::SystemCall;
using testing::write_pattern;

std::size_t committed() {
    return limits::commit_budget().committed();
}

/// The events of an arena, as text: "arena: kind bytes, used of capacity, limit".
class EventLog {
public:
    ArenaOptions listening(ArenaOptions options) {
        options.on_event = [this](const ArenaEvent& event) {
            static constexpr const char* kinds[] = {"growth", "give_back", "refusal"};
            events_.push_back(std::string(event.arena) + ": " +
                              kinds[static_cast<int>(event.kind)] + " " +
                              std::to_string(event.bytes) + ", " + std::to_string(event.used) +
                              " of " + std::to_string(event.capacity) + ", " + event.limit);
        };
        return options;
    }
    std::vector<std::string> take() { return std::exchange(events_, {}); }

private:
    std::vector<std::string> events_;
};

using Events = std::vector<std::string>;

class ArenaGrowth : public ::testing::TestWithParam<Sharing> {
protected:
    ArenaOptions options() const {
        ArenaOptions options = bare_options();
        options.sharing = GetParam();
        options.checks = Checks::off;
        return options;
    }
};

INSTANTIATE_TEST_SUITE_P(Sharings, ArenaGrowth,
                         ::testing::Values(Sharing::any_thread, Sharing::one_thread),
                         [](const auto& param) {
                             return param.param == Sharing::any_thread ? "AnyThread" : "OneThread";
                         });

TEST_P(ArenaGrowth, BlocksNeverMoveAndKeepTheirContent) {
    ArenaOptions tiny_steps = options();
    tiny_steps.growth.step = 1;
    Arena arena(tiny_steps);
    testing::Random random(1);
    struct Block {
        void* at;
        std::size_t bytes;
    };
    std::vector<Block> blocks;
    const auto* const base = static_cast<std::byte*>(arena.allocate(64));
    std::size_t used = 64;
    while (used < 40 * mib) {
        const std::size_t bytes = random.log_uniform(1, 200'000);
        blocks.push_back({arena.allocate(bytes), bytes});
        ASSERT_EQ(blocks.back().at, base + used);
        write_pattern(blocks.back().at, bytes, blocks.size());
        used += (bytes + 63) / 64 * 64;
        ASSERT_EQ(arena.used(), used);
        ASSERT_LT(arena.available(), page_bytes());
    }
    EXPECT_GT(arena.statistics().growths, 500U);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_TRUE(holds(blocks[i].at, blocks[i].bytes, i + 1));
    }
}

TEST_P(ArenaGrowth, MemoryIsNotFilled) {
    Arena arena(options());
    void* const block = arena.allocate(mib);
    write_pattern(block, mib, 3);
    arena.reset();
    // In the middle of the written pages, so the arena grows past them.
    EXPECT_EQ(arena.allocate(3 * mib), block);
    EXPECT_TRUE(holds(block, mib, 3)) << "the content is unchanged";
}

TEST_P(ArenaGrowth, RequestIsRoundedToTheGranuleOnly) {
    Arena arena(options());
    arena.allocate(64 * mib - 64);
    arena.allocate(1);
    EXPECT_EQ(arena.available(), 0U);
    EXPECT_EQ(arena.capacity(), 64 * mib);
}

TEST_P(ArenaGrowth, MaximumCapacityNeedNotBeWholePages) {
    ArenaOptions odd = options();
    odd.max_capacity = 10 * page_bytes() + 1000;
    Arena arena(odd);
    EXPECT_NE(arena.allocate(10 * page_bytes()), nullptr);
    auto* const last = static_cast<std::byte*>(arena.allocate(960));
    std::memset(last, 1, 960);
    EXPECT_EQ(arena.available(), 40U);
    EXPECT_THROW(arena.allocate(1), AllocationError);
    arena.reset();
    EXPECT_THROW(arena.allocate(10 * page_bytes() + 1001), AllocationError);
    EXPECT_NE(arena.allocate(10 * page_bytes() + 960), nullptr);
}

TEST_P(ArenaGrowth, IsReportedWithTheResultingCapacity) {
    EventLog log;
    ArenaOptions steps = options();
    steps.growth.step = mib;
    steps.initial_capacity = 64 * kib;
    Arena arena(log.listening(steps));
    EXPECT_EQ(log.take(), Events{}) << "the initial capacity is not reported as growth";
    arena.allocate(64 * kib);
    EXPECT_EQ(log.take(), Events{});
    arena.allocate(64);
    // Measured before the thread has taken the block, or after: where threads share an arena, they
    // claim a block first, except under a memory tool.
    const bool claims = GetParam() == Sharing::any_thread && !platform::has_memory_tool();
    const std::string used = claims ? "65600" : "65536";
    EXPECT_EQ(log.take(), Events{"mine: growth 1048576, " + used + " of 1114112, "});
    arena.allocate(2 * mib, 4096);
    EXPECT_EQ(log.take().size(), 1U);
    arena.reserve(8 * mib);
    EXPECT_EQ(log.take().size(), 1U);
    arena.reset();
    arena.trim();
    EXPECT_EQ(log.take(), Events{"mine: give_back 8388608, 0 of 0, "});
    arena.trim();
    EXPECT_EQ(log.take(), Events{});
}

TEST_P(ArenaGrowth, RefusalIsReportedOnceWithItsLimit) {
    EventLog log;
    ArenaOptions limited = options();
    limited.max_allocation = 70 * mib;
    Arena arena(log.listening(limited));
    EXPECT_EQ(arena.try_allocate(65 * mib), nullptr);
    EXPECT_EQ(log.take(), Events{"mine: refusal 68157440, 0 of 0, max_capacity"});
    EXPECT_THROW(arena.allocate(65 * mib), AllocationError);
    EXPECT_EQ(log.take(), Events{"mine: refusal 68157440, 0 of 0, max_capacity"});
    EXPECT_THROW(arena.allocate(71 * mib), AllocationError);
    EXPECT_EQ(log.take(), Events{"mine: refusal 74448896, 0 of 0, max_allocation"});
    EXPECT_THROW(arena.allocate(1, std::size_t{1} << 50), AllocationError);
    EXPECT_EQ(log.take(), Events{"mine: refusal 1, 0 of 0, the largest alignment"});
    EXPECT_THROW(arena.reserve(65 * mib), AllocationError);
    EXPECT_EQ(log.take(), Events{"mine: refusal 68157440, 0 of 0, max_capacity"});
    EXPECT_EQ(arena.statistics().refusals, 5U);
}

TEST_P(ArenaGrowth, RefusalByTheSystemLeavesTheArenaUnchanged) {
    EventLog log;
    Arena arena(log.listening(options()));
    void* const block = arena.allocate(mib);
    write_pattern(block, mib, 1);
    const std::size_t before = committed();
    const ArenaUsage usage(arena);
    log.take();
    {
        const Failing failing(SystemCall::commit_pages);
        for (int i = 0; i < 10; ++i) {
            EXPECT_THROW(arena.allocate(64), AllocationError);
            EXPECT_THROW(arena.allocate(64, 4096), AllocationError);
            EXPECT_EQ(arena.try_allocate(mib), nullptr);
        }
    }
    EXPECT_EQ(ArenaUsage(arena), usage);
    EXPECT_EQ(committed(), before);
    const Events events = log.take();
    EXPECT_EQ(events.size(), 30U);
    EXPECT_EQ(events.front(), "mine: refusal 64, 1048576 of 1048576, what the system commits");
    EXPECT_TRUE(holds(block, mib, 1));
    EXPECT_EQ(arena.allocate(64), static_cast<std::byte*>(block) + mib);
}

TEST_P(ArenaGrowth, DestructorReturnsEverythingToTheBudget) {
    const std::size_t before = committed();
    {
        ArenaOptions usual;
        usual.sharing = GetParam();
        Arena arena(usual);
        EXPECT_EQ(committed(), before);
        for (int i = 0; i < 30; ++i) arena.allocate(7 * mib + 13);
        EXPECT_EQ(committed() - before, arena.capacity());
        arena.reset();
        arena.trim();
        arena.reserve(9 * mib + 1);
        EXPECT_EQ(committed() - before, arena.capacity());
    }
    EXPECT_EQ(committed(), before);
}

TEST(ArenaAllocate, FailedConstructionLeavesNothing) {
    const std::size_t before = committed();
    ArenaOptions options = bare_options();
    options.initial_capacity = mib;
    {
        const Failing failing(SystemCall::commit_pages);
        EXPECT_EQ(message_of<AllocationError>([&] { const Arena arena(options); })
                      .find("tensorpool: mine: allocate: 1048576 B (1 MiB) "
                            "requested with 0 B in use "
                            "and 0 B committed; limit met: what the system commits ("),
                  0U);
    }
    options.max_capacity = std::size_t{1} << 62;
    EXPECT_THROW(Arena{options}, AllocationError) << "there is not as much address space";
    EXPECT_EQ(committed(), before);
}

TEST(ArenaAllocate, RefusalReportsTheSmallestSufficientLimit) {
    ArenaOptions options = bare_options();
    options.max_capacity = mib;
    const auto text = [&](std::size_t max_capacity) {
        options.max_capacity = max_capacity;
        Arena arena(options);
        (void)arena.allocate(100);
        return message_of<AllocationError>([&] { (void)arena.allocate(3 * mib); });
    };
    const std::string refused = text(mib);
    const std::string hint = "\n  it would fit if max_capacity were at least ";
    const std::size_t at = refused.find(hint);
    ASSERT_NE(at, std::string::npos) << refused;
    const std::size_t needed = std::stoull(refused.substr(at + hint.size()));
    EXPECT_NE(text(needed - 1), "") << needed;
    EXPECT_EQ(text(needed), "") << needed;
}

TEST(ArenaAllocate, GrowthEndsAtAvailableMemory) {
    const std::size_t before = committed();
    {
        ArenaOptions options = bare_options();
        options.max_capacity = 0;
        options.growth = GrowthPolicy::aggressive();
        Arena arena(options);
        void* const block = arena.allocate(mib);
        write_pattern(block, mib, 1);
        std::string refusal;
        while (refusal.empty()) {
            refusal = message_of<AllocationError>([&] { arena.allocate(256 * mib); });
        }
        EXPECT_NE(refusal.find("limit met: available memory"), std::string::npos) << refusal;
        EXPECT_NE(refusal.find("it would fit if available memory were at least "),
                  std::string::npos)
            << refusal;
        EXPECT_LE(committed(), limits::commit_budget().ceiling());
        EXPECT_TRUE(holds(block, mib, 1));
        arena.reset();
        EXPECT_EQ(arena.allocate(mib), block);
    }
    EXPECT_EQ(committed(), before);
}

}  // namespace
}  // namespace tensorpool
