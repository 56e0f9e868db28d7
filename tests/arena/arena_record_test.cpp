// The statistics of arenas and scratches in the segment, and what readers see there.

#include "arena/arena_memory.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include <tensorpool/arena.hpp>
#include <tensorpool/scratch.hpp>

#include "arena/arena_table.hpp"
#include "arena/arena_test.hpp"
#include "arena/records.hpp"
#include "blocks/worker.hpp"
#include "platform/platform.hpp"
#include "statistics/records/record_values.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using namespace testing;
using Kind = ArenaStatistics::Kind;

TEST(OwnedArenaRecord, TakesARecordAndGivesItBack) {
    std::optional holder = arena::make_record("one", Kind::scratch, 77);
    ASSERT_TRUE(holder->is_in_segment());
    const std::uint64_t id = (*holder)->id;
    const statistics::ArenaRecord* const record = arena_record(id);
    EXPECT_EQ(record, &**holder);
    EXPECT_EQ(statistics::statistics_of(*record).kind, Kind::scratch);
    EXPECT_STREQ(statistics::statistics_of(*record).name, "one");
    EXPECT_EQ(record->thread, 77U);
    const std::size_t before = arena_records();
    holder->leave();
    EXPECT_EQ(arena_record(id), nullptr);
    holder.reset();
    EXPECT_EQ(arena_records(), before - 1) << "the record is given back only once";
}

TEST(OwnedArenaRecord, IsPrivateWhenTheSegmentIsFull) {
    const NoArenaRecords no_records;
    const std::uint64_t left_out = arenas_left_out();
    std::optional holder = arena::make_record("apart", Kind::buffer, 0);
    EXPECT_FALSE(holder->is_in_segment());
    EXPECT_NE((*holder)->id, 0U);
    EXPECT_EQ(arena_record((*holder)->id), nullptr);
    EXPECT_STREQ(statistics::statistics_of(**holder).name, "apart");
    EXPECT_EQ(statistics::statistics_of(**holder).kind, Kind::buffer);
    EXPECT_EQ(arenas_left_out(), left_out + 1);
    holder.reset();
    EXPECT_EQ(arenas_left_out(), left_out);
}

TEST(OwnedArenaRecord, IsSummedUnderOtherWhenPrivate) {
    const NoArenaRecords no_records;
    const statistics::ArenaRecord& other = *statistics::segment().other<statistics::ArenaRecord>();
    {
        auto one = arena::make_record("one", Kind::growing, 0);
        auto two = arena::make_record("two", Kind::scratch, 1);
        one->words.used = 100 | std::uint64_t{0xABCD} << 48;
        one->totals.count_growth(4096);
        two->words.used = 20;
        two->words.high = 30;
        two->totals.count_refusal();
        EXPECT_TRUE(other_arena_is_empty()) << "until they are folded";
        for (int i = 0; i < 2; ++i) one.fold(), two.fold();
        EXPECT_EQ(other.words.used & statistics::used_mask, 120U)
            << "without the bits of the arena's top";
        EXPECT_EQ(other.words.high, 30U);
        EXPECT_EQ(other.totals.capacity_bytes, 4096U);
        EXPECT_EQ(other.totals.refusals, 1U);
        one->words.used = 40;
        one.fold();
        EXPECT_EQ(other.words.used & statistics::used_mask, 60U);
    }
    EXPECT_TRUE(other_arena_is_empty());
}

TEST(ArenaRecord, HoldsTheLiveStatisticsOfTheArena) {
    const std::size_t before = arena_records();
    std::uint64_t id = 0;
    {
        Arena arena(bare_options());
        arena.allocate(mib);
        id = arena.statistics().id;
        EXPECT_NE(id, 0U);
        EXPECT_EQ(arena.statistics().thread, 0U);
        EXPECT_EQ(arena_records(), before + 1);
        ASSERT_NE(arena_record(id), nullptr);
        const statistics::ArenaRecord& record = *arena_record(id);
        EXPECT_EQ(to_json(statistics::statistics_of(record)), to_json(arena.statistics()));
        arena.allocate(64);
        EXPECT_EQ(statistics::statistics_of(record).used_bytes, mib + 64) << "without delay";
        arena.reset();
        EXPECT_EQ(statistics::statistics_of(record).used_bytes, 0U);
        EXPECT_EQ(statistics::statistics_of(record).peak_used_bytes, mib + 64);
    }
    EXPECT_EQ(arena_record(id), nullptr);
    EXPECT_EQ(arena_records(), before);
}

TEST(ArenaRecord, IdsAreNeverReused) {
    std::uint64_t last = 0;
    for (int i = 0; i < 10; ++i) {
        const std::uint64_t id = Arena::measuring().statistics().id;
        EXPECT_GT(id, last);
        last = id;
    }
}

TEST(ArenaRecord, HoldsNoAddresses) {
    alignas(64) static std::byte buffer[4096];
    Arena over = Arena::over(buffer);
    Arena own(bare_options());
    Arena measuring = Arena::measuring();
    for (Arena* const arena : {&over, &own, &measuring}) {
        const statistics::ArenaRecord& record = *arena_record(arena->statistics().id);
        void* const block = arena->allocate(1000);
        EXPECT_FALSE(holds_address(record, block)) << arena->name();
        EXPECT_FALSE(holds_address(record, arena)) << arena->name();
        arena->reset();
        EXPECT_FALSE(holds_address(record, block)) << arena->name();
    }
    statistics::ArenaRecord planted = {};
    planted.words.high = reinterpret_cast<std::uintptr_t>(buffer) + 64;
    EXPECT_TRUE(holds_address(planted, buffer)) << "the check finds a planted address";
}

TEST(ArenaRecord, ArenaWithAPrivateRecordWorksAndLeavesNoTrace) {
    const NoArenaRecords no_records;
    const statistics::ArenaRecord& other = *statistics::segment().other<statistics::ArenaRecord>();
    {
        ArenaOptions options = bare_options();
        options.retain = 0;
        Arena arena(options);
        const Arena::Mark mark = arena.mark();
        EXPECT_NE(arena.allocate(3 * mib), nullptr);
        EXPECT_EQ(other.totals.growths, 1U);
        EXPECT_EQ(other.totals.capacity_bytes, 3 * mib);
        EXPECT_EQ(arena.try_allocate(2 * gib), nullptr);
        EXPECT_EQ(other.totals.refusals, 1U);
        EXPECT_EQ(other.words.used & statistics::used_mask, 3 * mib);
        arena.release_to(mark);
        EXPECT_EQ(other.words.used & statistics::used_mask, 0U);
        EXPECT_EQ(other.totals.capacity_bytes, 0U);
        EXPECT_EQ(other.totals.peak_used_bytes, 3 * mib);
        EXPECT_EQ(arena.statistics().growths, 1U) << "its own statistics stay separate";
        EXPECT_STREQ(arena.statistics().name, "mine");
        EXPECT_EQ(arenas_left_out(), 1U);
    }
    EXPECT_TRUE(other_arena_is_empty());
    EXPECT_EQ(arenas_left_out(), 0U);
}

TEST(ArenaRecord, FailedConstructionLeavesNoRecord) {
    const std::size_t before = arena_records();
    EXPECT_THROW(Arena{ArenaOptions{.alignment = 3}}, std::invalid_argument);
    ArenaOptions options = bare_options();
    options.initial_capacity = SIZE_MAX;
    options.max_capacity = SIZE_MAX;
    EXPECT_THROW(Arena{options}, AllocationError);
    EXPECT_EQ(arena_records(), before);
}

TEST(ArenaRecord, ChildOfAForkCountsInItsOwnRecord) {
    Arena arena(bare_options());
    arena.allocate(mib);
    EXPECT_TRUE(holds_in_child([&] {
        const statistics::ArenaRecord* const record = arena_record(arena.statistics().id);
        if (record == nullptr || (record->words.used & statistics::used_mask) != mib) return false;
        arena.allocate(2 * mib);
        return statistics::statistics_of(*record).used_bytes == 3 * mib;
    }));
    EXPECT_EQ(arena.used(), mib);
    EXPECT_EQ(arena_record(arena.statistics().id)->totals.growths, 1U);
}

TEST(ArenaRecord, ChildOfAForkMayDestroyAnArenaWithAPrivateRecord) {
    const NoArenaRecords no_records;
    auto arena = std::make_unique<Arena>(bare_options());
    arena->allocate(mib);
    EXPECT_TRUE(holds_in_child([&] {
        if (statistics::segment().other<statistics::ArenaRecord>()->totals.capacity_bytes != mib)
            return false;
        arena.reset();
        return other_arena_is_empty() && arenas_left_out() == 0;
    }));
    EXPECT_EQ(statistics::segment().other<statistics::ArenaRecord>()->totals.capacity_bytes, mib);
}

TEST(ScratchRecord, HoldsTheLiveStatisticsOfTheScratch) {
    Worker worker;
    worker.does([] {
        Scratch& scratch = Scratch::local();
        const ArenaStatistics statistics = scratch.statistics();
        EXPECT_EQ(statistics.thread, platform::current_thread_id());
        ASSERT_NE(arena_record(statistics.id), nullptr);
        const statistics::ArenaRecord& record = *arena_record(statistics.id);
        EXPECT_EQ(record.thread, statistics.thread);
        {
            const ScratchScope scope;
            scratch.allocate(100);
            EXPECT_EQ(record.words.used, 128U) << "without delay";
            scratch.allocate(mib);
            EXPECT_EQ(record.words.used, mib + 128) << "in two chunks";
            EXPECT_EQ(record.totals.growths, 2U);
            scratch.allocate(1000, 8192);
        }
        EXPECT_EQ(record.words.used, 0U);
        EXPECT_EQ(to_json(statistics::statistics_of(record)), to_json(scratch.statistics()));
    });
}

TEST(ScratchRecord, IsRemovedWithItsThread) {
    const std::size_t before = arena_records();
    std::uint64_t id = 0;
    std::thread([&] {
        id = Scratch::local().statistics().id;
        EXPECT_EQ(arena_records(), before + 1);
    }).join();
    EXPECT_EQ(arena_record(id), nullptr);
    EXPECT_EQ(arena_records(), before);
}

TEST(ScratchRecord, HoldsNoAddresses) {
    std::thread([] {
        Scratch& scratch = Scratch::local();
        alignas(64) std::byte buffer[4096];
        Scratch over = Scratch::over(buffer);
        const ScratchScope scope;
        for (Scratch* const one : {&scratch, &over}) {
            const statistics::ArenaRecord& record = *arena_record(one->statistics().id);
            void* const block = one->allocate(1000);
            EXPECT_FALSE(holds_address(record, block));
            EXPECT_FALSE(holds_address(record, one));
        }
        const statistics::ArenaRecord& record = *arena_record(scratch.statistics().id);
        for (int i = 0; i < 4; ++i) {
            EXPECT_FALSE(holds_address(record, scratch.allocate(mib))) << "in chunk " << i + 1;
        }
    }).join();
}

TEST(ScratchRecord, ScratchWithAPrivateRecordWorksAndLeavesNoTrace) {
    const NoArenaRecords no_records;
    const statistics::ArenaRecord& other = *statistics::segment().other<statistics::ArenaRecord>();
    std::thread([&] {
        Scratch& scratch = Scratch::local();
        EXPECT_EQ(other.totals.growths, 1U);
        {
            const ScratchScope scope;
            write_pattern(scratch.allocate(mib), mib, 1);
            EXPECT_EQ(other.totals.growths, 2U);
            EXPECT_EQ(other.totals.capacity_bytes, scratch.capacity());
        }
        EXPECT_EQ(other.totals.capacity_bytes, scratch.capacity()) << "joined";
        EXPECT_EQ(other.words.used, 0U);
        EXPECT_EQ(scratch.peak(), mib);
        EXPECT_THROW(scratch.allocate(SIZE_MAX - 100), AllocationError);
        EXPECT_EQ(other.totals.refusals, 1U);
        scratch.trim();
        EXPECT_EQ(other.totals.capacity_bytes, 0U);
        scratch.allocate(100);
    }).join();
    EXPECT_TRUE(other_arena_is_empty());
    EXPECT_EQ(arenas_left_out(), 0U);
}

TEST(ScratchRecord, ChildOfAForkKeepsOnlyTheRecordOfItsThread) {
    Worker other;
    std::uint64_t others = 0;
    other.does([&] { others = Scratch::local().statistics().id; });
    std::thread([&] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        scratch.allocate(100);
        EXPECT_TRUE(holds_in_child([&] {
            const statistics::ArenaRecord* const record = arena_record(scratch.statistics().id);
            if (record == nullptr || record->words.used != 128) return false;
            if (record->thread != platform::current_thread_id()) return false;
            scratch.allocate(100);
            return record->words.used == 256 && arena_record(others) == nullptr;
        }));
        EXPECT_EQ(scratch.used(), 128U);
    }).join();
    EXPECT_NE(arena_record(others), nullptr);
}

TEST(ScratchRecord, ChildOfAForkForgetsScratchesOfOtherThreads) {
    const NoArenaRecords no_records;
    Worker other;
    other.does([] { Scratch::local(); });
    EXPECT_FALSE(other_arena_is_empty());
    EXPECT_TRUE(holds_in_child([] { return other_arena_is_empty() && arenas_left_out() == 0; }));
    EXPECT_EQ(arenas_left_out(), 1U);
}

}  // namespace
}  // namespace tensorpool
