// Memory that stays committed: retain, trim, reserve.

#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <vector>

#include "arena/arena_test.hpp"
#include "limits/commit_budget.hpp"
#include "pages/failing_system.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using platform::page_bytes;
using testing::ArenaUsage;
using testing::bare_options;
using testing::Failing;
using testing::kib;
using testing::mib;
using testing::SystemCall;

std::size_t committed() {
    return limits::commit_budget().committed();
}

/// Returns how many pages of the range are resident.
std::size_t resident_pages(const void* begin, std::size_t bytes) {
    std::vector<unsigned char> states(bytes / page_bytes());
    if (mincore(const_cast<void*>(begin), bytes, states.data()) != 0) return SIZE_MAX;
    std::size_t count = 0;
    for (const unsigned char state : states) count += state & 1U;
    return count;
}

TEST(ArenaRetention, EverythingStaysCommittedByDefault) {
    Arena arena(bare_options());
    void* const block = arena.allocate(4 * mib);
    std::memset(block, 1, 4 * mib);
    arena.reset();
    EXPECT_EQ(arena.capacity(), 4 * mib);
    EXPECT_EQ(resident_pages(block, 4 * mib), 4 * mib / page_bytes());
    EXPECT_EQ(arena.statistics().give_backs, 0U);
    EXPECT_EQ(arena.allocate(4 * mib), block);
    EXPECT_EQ(arena.statistics().growths, 1U);
}

TEST(ArenaRetention, FreeMemoryAboveRetainGoesBack) {
    ArenaOptions options = bare_options();
    options.retain = mib;
    Arena arena(options);
    const std::size_t before = committed();
    auto* const block = static_cast<std::byte*>(arena.allocate(4 * mib));
    std::memset(block, 1, 4 * mib);
    arena.reset();
    EXPECT_EQ(arena.capacity(), mib);
    EXPECT_EQ(arena.available(), mib);
    EXPECT_EQ(committed() - before, mib);
    EXPECT_EQ(resident_pages(block, mib), mib / page_bytes());
    EXPECT_EQ(resident_pages(block + mib, 3 * mib), 0U);
    EXPECT_EQ(arena.statistics().give_backs, 1U);
    EXPECT_EQ(arena.statistics().given_back_bytes, 3 * mib);
    EXPECT_EQ(arena.peak(), 4 * mib);
    EXPECT_EQ(arena.statistics().peak_capacity_bytes, 4 * mib);
}

TEST(ArenaRetention, UsedMemoryAboveRetainStays) {
    ArenaOptions options = bare_options();
    options.retain = mib;
    Arena arena(options);
    auto* const block = static_cast<unsigned char*>(arena.allocate(2 * mib));
    std::memset(block, 7, 2 * mib);
    const Arena::Mark mark = arena.mark();
    arena.allocate(4 * mib);
    arena.release_to(mark);
    EXPECT_EQ(arena.capacity(), 2 * mib);
    EXPECT_EQ(block[2 * mib - 1], 7);
    EXPECT_NE(arena.allocate(4 * mib), nullptr) << "the arena grows again";
}

TEST(ArenaRetention, RetainOfZeroKeepsNothing) {
    ArenaOptions options = bare_options();
    options.retain = 0;
    options.initial_capacity = mib;
    Arena arena(options);
    for (int round = 0; round < 3; ++round) {
        std::memset(arena.allocate(100 * kib), 1, 100 * kib);
        arena.reset();
        EXPECT_EQ(arena.capacity(), 0U);
        EXPECT_EQ(arena.available(), 0U);
    }
}

TEST(ArenaRetention, ReleaseWithinRetainGivesNothingBack) {
    ArenaOptions options = bare_options();
    options.retain = mib;
    Arena arena(options);
    arena.allocate(mib);
    arena.reset();
    EXPECT_EQ(arena.capacity(), mib);
    EXPECT_EQ(arena.statistics().give_backs, 0U);
}

TEST(ArenaTrim, GivesBackWholePagesAboveTheTop) {
    Arena arena(bare_options());
    auto* const kept = static_cast<unsigned char*>(arena.allocate(page_bytes() + 100));
    std::memset(kept, 9, page_bytes() + 100);
    const std::size_t before = committed();
    auto* const block = static_cast<unsigned char*>(arena.allocate(mib));
    std::memset(block, 1, mib);
    arena.release_to(std::size_t{page_bytes() + 128});
    const std::size_t capacity = arena.capacity();
    EXPECT_EQ(arena.trim(), capacity - 2 * page_bytes());
    EXPECT_EQ(arena.capacity(), 2 * page_bytes());
    EXPECT_EQ(committed(), before);
    EXPECT_EQ(kept[page_bytes() + 99], 9);
    EXPECT_EQ(arena.trim(), 0U);
    EXPECT_EQ(arena.statistics().give_backs, 1U);
    EXPECT_EQ(arena.allocate(mib), block);
    EXPECT_EQ(block[mib - 1], 0) << "a new page, since the old one was given back";
}

TEST(ArenaTrim, GivesBackReservedAndRetainedMemory) {
    ArenaOptions options = bare_options();
    options.initial_capacity = mib;
    Arena arena(options);
    arena.reserve(4 * mib);
    EXPECT_EQ(arena.trim(), 4 * mib);
    EXPECT_EQ(arena.capacity(), 0U);
    EXPECT_NE(arena.allocate(1), nullptr);
}

TEST(ArenaTrim, PagesThatTheSystemRefusesStayCommitted) {
    ArenaOptions options = bare_options();
    options.retain = mib;
    Arena arena(options);
    arena.allocate(4 * mib);
    const std::size_t before = committed();
    {
        const Failing failing(SystemCall::decommit_pages);
        EXPECT_EQ(arena.trim(), 0U);
        arena.reset();
        EXPECT_EQ(arena.trim(), 0U);
    }
    EXPECT_EQ(arena.capacity(), 4 * mib);
    EXPECT_EQ(arena.available(), 4 * mib);
    EXPECT_EQ(committed(), before);
    EXPECT_EQ(arena.statistics().give_backs, 0U);
    EXPECT_EQ(arena.trim(), 4 * mib);
}

TEST(ArenaReserve, CommitsAndTouchesTheRequestedBytes) {
    Arena arena(bare_options());
    arena.reserve(3 * mib + 1);
    EXPECT_EQ(arena.capacity(), 3 * mib + page_bytes());
    EXPECT_EQ(arena.used(), 0U);
    void* const block = arena.allocate(64);
    EXPECT_EQ(resident_pages(block, arena.capacity()), arena.capacity() / page_bytes());
    const std::uint64_t growths = arena.statistics().growths;
    arena.reserve(mib);
    arena.reserve(0);
    EXPECT_EQ(arena.statistics().growths, growths);
}

TEST(ArenaReserve, TouchesPagesCommittedBefore) {
    ArenaOptions options = bare_options();
    options.initial_capacity = 2 * mib;
    Arena arena(options);
    auto* const block = static_cast<unsigned char*>(arena.allocate(mib));
    block[5] = 77;
    arena.reserve(2 * mib);
    EXPECT_EQ(resident_pages(block, 2 * mib), 2 * mib / page_bytes());
    EXPECT_EQ(block[5], 77) << "the content stays";
}

TEST(ArenaReserve, FailureChangesNothing) {
    Arena arena(bare_options());
    arena.allocate(100);
    const ArenaUsage before(arena);
    for (const std::size_t bytes : {64 * mib + 1, std::size_t{SIZE_MAX}}) {
        EXPECT_THROW(arena.reserve(bytes), AllocationError);
    }
    {
        const Failing failing(SystemCall::commit_pages);
        EXPECT_THROW(arena.reserve(mib), AllocationError);
    }
    EXPECT_EQ(ArenaUsage(arena), before);
    EXPECT_EQ(arena.statistics().refusals, 3U);
    arena.reserve(64 * mib);
    EXPECT_EQ(arena.capacity(), 64 * mib);
    EXPECT_EQ(arena.statistics().reserved_bytes, 64 * mib);
}

}  // namespace
}  // namespace tensorpool
