#include "statistics/segment/segment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "plan/planned_table.hpp"
#include "platform/platform.hpp"
#include "statistics/add_records.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::statistics {
namespace {

/// A segment that is destroyed with the test.
struct OwnSegment : Segment {
    OwnSegment() = default;
    ~OwnSegment() {
        if (header() == nullptr) return;
        const platform::SharedMemory memory = this->memory().used();
        platform::close_shared_memory(memory);
        platform::unmap(memory.address, segment_bytes);
    }
    template <class Record>
    Record* at(std::uint64_t offset) {
        return reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(header()) + offset);
    }
};

std::string text(const Name& name) {
    char text[Name::bytes];
    load_name(name, text);
    return text;
}

template <class Record>
bool is_zeros(const Record& record) {
    for (std::size_t i = 0; i < words_of<Record>; ++i) {
        if (as_words(record)[i] != 0) return false;
    }
    return true;
}

/// Overwrites the whole record, as its user may.
template <class Record>
void scribble(Record& record) {
    for (std::size_t i = 0; i < words_of<Record>; ++i) as_words(record)[i] = 77;
}

/// Returns whether all words are zero except those that describe the object.
template <class Record, class Forget>
bool is_fresh(const Record& record, Forget forget) {
    Record copy;
    for (std::size_t i = 0; i < words_of<Record>; ++i) {
        as_words(copy)[i] = as_words(record)[i].load();
    }
    forget(copy);
    return is_zeros(copy);
}

bool is_fresh(const PoolRecord& pool) {
    return is_fresh(pool, [](PoolRecord& copy) {
        copy.id = 0;
        copy.limit_bytes = 0;
        store_name(copy.name, "");
    });
}
bool is_fresh(const ArenaRecord& arena) {
    return is_fresh(arena, [](ArenaRecord& copy) {
        copy.id = 0;
        copy.kind = 0;
        copy.thread = 0;
        store_name(copy.name, "");
    });
}
bool is_fresh(const DeviceRecord& device) {
    return is_fresh(device, [](DeviceRecord& copy) {
        copy.id = 0;
        copy.kind = 0;
        store_name(copy.name, "");
        store_text(copy.device, "");
    });
}
bool is_fresh(const DeviceStreamRecord& stream) {
    return is_fresh(stream, [](DeviceStreamRecord& copy) {
        copy.id = 0;
        copy.device = 0;
        copy.stream = 0;
    });
}
bool is_fresh(const PlannedRecord& planned) {
    return is_fresh(planned, [](PlannedRecord& copy) {
        copy.id = 0;
        store_name(copy.name, "");
    });
}
bool is_fresh(const CountersRecord& counters) {
    return is_fresh(counters, [](CountersRecord& copy) { copy.pool = 0; });
}

// Creation --------------------------------------------------------------------------------------

TEST(Segment, DoesNotExistBeforeFirstRecord) {
    OwnSegment segment;
    EXPECT_EQ(segment.header(), nullptr);
    EXPECT_EQ(segment.timeline(), nullptr);
    EXPECT_EQ(segment.other<PoolRecord>(), nullptr);
    EXPECT_EQ(segment.other<ArenaRecord>(), nullptr);
    EXPECT_EQ(segment.other<DeviceRecord>(), nullptr);
    EXPECT_EQ(segment.other<PlannedRecord>(), nullptr);
    EXPECT_EQ(segment.memory().used().address, nullptr);
}

TEST(Segment, HeaderDescribesLayoutAndProcess) {
    OwnSegment segment;
    const std::uint64_t before = platform::monotonic_clock_ns();
    ASSERT_NE(add_pool(segment, "first", 0), nullptr);
    const SegmentHeader& header = *segment.header();
    EXPECT_EQ(header.magic, segment_magic);
    EXPECT_EQ(header.version, segment_version);
    EXPECT_EQ(header.bytes, segment_bytes);
    EXPECT_EQ(header.header_bytes, header_bytes);
    const platform::ProcessIdentity process = platform::identify_process();
    EXPECT_EQ(header.process, process.number);
    EXPECT_EQ(header.process_space, process.name_space);
    EXPECT_EQ(header.start_ticks, process.start_ticks);
    EXPECT_EQ(text(header.process_name), process.name);
    const std::string version = text(header.library_version);
    EXPECT_EQ(std::count(std::begin(version), std::end(version), '.'), 2) << version;
    EXPECT_GE(header.made_ns, before);
    EXPECT_LE(header.made_ns, platform::monotonic_clock_ns());
    EXPECT_GT(header.made_unix_ns, 1'600'000'000'000'000'000U);
}

TEST(Segment, RegionsDoNotOverlap) {
    OwnSegment segment;
    ASSERT_NE(add_pool(segment, "first", 0), nullptr);
    const SegmentHeader& header = *segment.header();
    std::uint64_t end = header.header_bytes;
    ASSERT_NE(add_arena(segment, "arena", 0, 0), nullptr);
    DeviceRecord* const device = add_device(segment, "device", 0, "cpu");
    ASSERT_NE(add_device_stream(segment, *device, 0), nullptr);
    ASSERT_NE(add_planned(segment, "planned"), nullptr);
    for (std::size_t i = 0; i != header.kinds; ++i) {
        const Region& region = header.regions[i];
        EXPECT_GE(region.offset, end);
        EXPECT_EQ(region.offset % 64, 0U);
        EXPECT_GT(region.record_count, 0U);
        EXPECT_EQ(region.left_out, 0U);
        EXPECT_LE(region.used, region.record_count);
        end = region.offset + region.record_count * region.record_bytes;
    }
    EXPECT_LE(end, header.bytes);
    EXPECT_EQ(header.region<PoolRecord>().record_bytes, sizeof(PoolRecord));
    EXPECT_EQ(header.region<DeviceRecord>().record_bytes, sizeof(DeviceRecord));
    EXPECT_EQ(header.region<DeviceStreamRecord>().record_bytes, sizeof(DeviceStreamRecord));
    EXPECT_EQ(header.region<PlannedRecord>().record_bytes, sizeof(PlannedRecord));
    EXPECT_EQ(header.region<CountersRecord>().record_bytes, sizeof(CountersRecord));
}

TEST(Segment, FirstRecordOfKindIsOther) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "mine", 0);
    ArenaRecord* const arena = add_arena(segment, "mine", 0, 0);
    DeviceRecord* const device = add_device(segment, "mine", 0, "cuda:0");
    ScopeRecord* const scope = segment.find_or_add<ScopeRecord>("mine");
    PlannedRecord* const planned = add_planned(segment, "mine");
    ASSERT_NE(segment.other<PlannedRecord>(), nullptr);
    EXPECT_EQ(planned, segment.other<PlannedRecord>() + 1);
    EXPECT_EQ(text(segment.other<PlannedRecord>()->name), "other");
    EXPECT_EQ(segment.other<PlannedRecord>()->id, 0U);
    EXPECT_EQ(device, segment.other<DeviceRecord>() + 1);
    EXPECT_EQ(text(segment.other<DeviceRecord>()->name), "other");
    EXPECT_EQ(segment.other<DeviceRecord>()->id, 0U);
    EXPECT_EQ(pool, segment.other<PoolRecord>() + 1);
    EXPECT_EQ(arena, segment.other<ArenaRecord>() + 1);
    EXPECT_EQ(text(segment.other<PoolRecord>()->name), "other");
    EXPECT_EQ(text(segment.other<ArenaRecord>()->name), "other");
    EXPECT_EQ(text((scope - 1)->name), "other");
    EXPECT_EQ(segment.other<PoolRecord>()->id, 0U);
    EXPECT_EQ(segment.other<ArenaRecord>()->id, 0U);
    EXPECT_EQ((scope - 1)->id, 0U);
}

// Records ---------------------------------------------------------------------------------------

TEST(Segment, NewRecordsAreZeroExceptDescription) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "weights", 4096);
    EXPECT_EQ(text(pool->name), "weights");
    EXPECT_EQ(pool->limit_bytes, 4096U);
    EXPECT_NE(pool->id, 0U);
    EXPECT_TRUE(is_fresh(*pool));
    ArenaRecord* const arena = add_arena(segment, "steps", 2, 55);
    EXPECT_EQ(text(arena->name), "steps");
    EXPECT_EQ(arena->kind, 2U);
    EXPECT_EQ(arena->thread, 55U);
    EXPECT_NE(arena->id, 0U);
    EXPECT_TRUE(is_fresh(*arena));
    CountersRecord* const counters = add_slot(segment, *pool);
    EXPECT_EQ(counters->pool, pool->id);
    EXPECT_TRUE(is_fresh(*counters));
    DeviceRecord* const device = add_device(segment, "gpu", 1, "cuda:12");
    EXPECT_EQ(text(device->name), "gpu");
    EXPECT_EQ(device->kind, 1U);
    char on[sizeof device->device];
    load_text(device->device, on);
    EXPECT_STREQ(on, "cuda:12");
    EXPECT_NE(device->id, 0U);
    EXPECT_TRUE(is_fresh(*device));
    DeviceStreamRecord* const stream = add_device_stream(segment, *device, 3);
    EXPECT_EQ(stream->device, device->id);
    EXPECT_EQ(stream->stream, 3U);
    EXPECT_NE(stream->id, 0U);
    EXPECT_TRUE(is_fresh(*stream));
    PlannedRecord* const planned = add_planned(segment, "step");
    EXPECT_EQ(text(planned->name), "step");
    EXPECT_NE(planned->id, 0U);
    EXPECT_TRUE(is_fresh(*planned));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(planned) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(stream) % 64, 0U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(counters) % 64, 0U);
}

TEST(Segment, RemovedRecordsAreReusedAsZeros) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "old", 1);
    ArenaRecord* const arena = add_arena(segment, "old", 1, 1);
    CountersRecord* const counters = add_slot(segment, *pool);
    CountersRecord* const second = add_slot(segment, *pool);
    scribble(*counters);
    scribble(*second);
    segment.remove(*counters);
    segment.remove(*second);
    scribble(*pool);
    segment.remove(*pool);
    scribble(*arena);
    segment.remove(*arena);
    EXPECT_TRUE(is_zeros(*pool));
    EXPECT_TRUE(is_zeros(*arena));
    DeviceRecord* const device = add_device(segment, "old", 1, "cuda:0");
    DeviceStreamRecord* const stream = add_device_stream(segment, *device, 1);
    scribble(*stream);
    segment.remove(*stream);
    scribble(*device);
    segment.remove(*device);
    EXPECT_TRUE(is_zeros(*device));
    EXPECT_TRUE(is_zeros(*stream));
    PlannedRecord* const planned = add_planned(segment, "old");
    scribble(*planned);
    segment.remove(*planned);
    EXPECT_TRUE(is_zeros(*planned));
    EXPECT_EQ(add_planned(segment, "new"), planned);
    EXPECT_TRUE(is_fresh(*planned));

    EXPECT_EQ(add_pool(segment, "new", 2), pool);
    EXPECT_TRUE(is_fresh(*pool));
    EXPECT_EQ(text(pool->name), "new");
    EXPECT_EQ(add_arena(segment, "new", 2, 2), arena);
    EXPECT_TRUE(is_fresh(*arena));
    EXPECT_EQ(add_device(segment, "new", 2, ""), device);
    EXPECT_TRUE(is_fresh(*device));
    EXPECT_EQ(add_device_stream(segment, *device, 2), stream);
    EXPECT_TRUE(is_fresh(*stream));
    EXPECT_EQ(add_slot(segment, *pool), second);
    EXPECT_EQ(add_slot(segment, *pool), counters);
    EXPECT_TRUE(is_fresh(*counters));
    EXPECT_TRUE(is_fresh(*second));
    EXPECT_EQ(counters->pool, pool->id);
}

TEST(Segment, RemovedCountersBelongToNoPool) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    CountersRecord* const counters = add_slot(segment, *pool);
    scribble(counters->counters);
    counters->thread = 5;
    segment.remove(*counters);
    EXPECT_EQ(counters->pool, 0U);
    EXPECT_EQ(counters->thread, 0U);
    EXPECT_TRUE(is_zeros(counters->counters));
}

TEST(Segment, NumbersNeverRepeat) {
    OwnSegment segment;
    std::set<std::uint64_t> numbers = {0};
    for (int round = 0; round < 100; ++round) {
        PoolRecord* const pool = add_pool(segment, "pool", 0);
        ArenaRecord* const arena = add_arena(segment, "arena", 0, 0);
        EXPECT_TRUE(numbers.insert(pool->id).second);
        EXPECT_TRUE(numbers.insert(arena->id).second);
        EXPECT_TRUE(numbers.insert(segment.next_id()).second);
        segment.remove(*pool);
        segment.remove(*arena);
    }
    EXPECT_EQ(segment.header()->region<PoolRecord>().used, 2U) << "one record is reused";
}

TEST(Segment, EpochIsEvenAndGrowsByTwoWithEachChange) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    const Counter& epoch = segment.header()->epoch;
    EXPECT_EQ(epoch % 2, 0U);
    std::uint64_t last = epoch;
    const auto moved = [&] { return epoch - std::exchange(last, epoch.load()); };
    ArenaRecord* const arena = add_arena(segment, "arena", 0, 0);
    EXPECT_EQ(moved(), 2U);
    CountersRecord* const counters = add_slot(segment, *pool);
    EXPECT_EQ(moved(), 2U);
    DeviceRecord* const device = add_device(segment, "device", 0, "");
    EXPECT_EQ(moved(), 2U);
    DeviceStreamRecord* const stream = add_device_stream(segment, *device, 0);
    EXPECT_EQ(moved(), 2U);
    segment.remove(*stream);
    EXPECT_EQ(moved(), 2U);
    segment.remove(*device);
    EXPECT_EQ(moved(), 2U);
    segment.find_or_add<ScopeRecord>("scope");
    EXPECT_EQ(moved(), 2U);
    segment.find_or_add<ScopeRecord>("scope");
    EXPECT_EQ(moved(), 0U) << "it exists already";
    segment.remove(*counters);
    EXPECT_EQ(moved(), 2U);
    segment.remove(*arena);
    EXPECT_EQ(moved(), 2U);
    segment.remove(*pool);
    EXPECT_EQ(moved(), 2U);
    segment.count_left_out(PoolRecord::layout, true);
    EXPECT_EQ(moved(), 0U) << "only a counter";
}

// No record left --------------------------------------------------------------------------------

TEST(Segment, FullKindHasNoRecordUntilOneIsRemoved) {
    OwnSegment segment;
    std::vector<PoolRecord*> pools;
    while (PoolRecord* const pool = add_pool(segment, "pool", 0)) pools.push_back(pool);
    EXPECT_EQ(pools.size(), count_of<PoolRecord> - 1);
    std::vector<ArenaRecord*> arenas;
    while (ArenaRecord* const arena = add_arena(segment, "arena", 0, 0)) arenas.push_back(arena);
    EXPECT_EQ(arenas.size(), count_of<ArenaRecord> - 1);
    std::vector<CountersRecord*> all_counters;
    while (CountersRecord* const counters = add_slot(segment, *pools[0]))
        all_counters.push_back(counters);
    EXPECT_EQ(all_counters.size(), count_of<CountersRecord>);
    std::vector<DeviceRecord*> devices;
    while (DeviceRecord* const one = add_device(segment, "device", 0, "")) devices.push_back(one);
    EXPECT_EQ(devices.size(), count_of<DeviceRecord> - 1);
    std::vector<DeviceStreamRecord*> streams;
    while (auto* const stream = add_device_stream(segment, *devices[0], 0)) {
        streams.push_back(stream);
    }
    EXPECT_EQ(streams.size(), count_of<DeviceStreamRecord> - 1);
    const SegmentHeader& header = *segment.header();
    std::vector<PlannedRecord*> planned;
    while (PlannedRecord* const one = add_planned(segment, "step")) planned.push_back(one);
    EXPECT_EQ(planned.size(), count_of<PlannedRecord> - 1);
    EXPECT_EQ(header.region<PlannedRecord>().used, header.region<PlannedRecord>().record_count);
    segment.remove(*planned[5]);
    EXPECT_EQ(add_planned(segment, "again"), planned[5]);
    EXPECT_EQ(add_planned(segment, "again"), nullptr);
    EXPECT_EQ(header.region<DeviceRecord>().used, header.region<DeviceRecord>().record_count);
    EXPECT_EQ(header.region<DeviceStreamRecord>().used,
              header.region<DeviceStreamRecord>().record_count);
    EXPECT_EQ(header.region<PoolRecord>().used, header.region<PoolRecord>().record_count);
    EXPECT_EQ(header.region<ArenaRecord>().used, header.region<ArenaRecord>().record_count);
    EXPECT_EQ(header.region<CountersRecord>().used, header.region<CountersRecord>().record_count);
    EXPECT_EQ(header.epoch % 2, 0U);

    segment.remove(*pools[500]);
    EXPECT_EQ(add_pool(segment, "again", 0), pools[500]);
    EXPECT_EQ(add_pool(segment, "again", 0), nullptr);
    segment.remove(*arenas[7]);
    EXPECT_EQ(add_arena(segment, "again", 0, 0), arenas[7]);
    segment.remove(*devices[8]);
    EXPECT_EQ(add_device(segment, "again", 0, ""), devices[8]);
    EXPECT_EQ(add_device(segment, "again", 0, ""), nullptr);
    segment.remove(*streams[3]);
    EXPECT_EQ(add_device_stream(segment, *devices[1], 0), streams[3]);
    EXPECT_EQ(add_device_stream(segment, *devices[1], 0), nullptr);
    segment.remove(*all_counters[9]);
    EXPECT_EQ(add_slot(segment, *pools[1]), all_counters[9]);
    EXPECT_EQ(add_slot(segment, *pools[1]), nullptr);
}

TEST(Segment, RecordsDoNotOverlap) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    while (PoolRecord* const one = add_pool(segment, "pool", 0))
        one->left_out.large.parked_bytes = 1;
    DeviceRecord* const device = add_device(segment, "device", 0, "");
    while (auto* const one = add_device(segment, "device", 0, "")) scribble(one->left_out);
    while (auto* const stream = add_device_stream(segment, *device, 0)) {
        ASSERT_TRUE(is_fresh(*stream)) << "used by no other stream";
        scribble(stream->counters);
    }
    while (CountersRecord* const counters = add_slot(segment, *pool)) {
        ASSERT_TRUE(is_fresh(*counters)) << "used by no other thread";
        ASSERT_LE(reinterpret_cast<std::byte*>(counters + 1),
                  reinterpret_cast<std::byte*>(segment.header()) + segment_bytes);
        scribble(counters->counters);
    }
    EXPECT_EQ(segment.header()->magic, segment_magic);
}

TEST(Segment, CountsLeftOutObjectsByKind) {
    OwnSegment segment;
    add_pool(segment, "pool", 0);
    segment.count_left_out(PoolRecord::layout, true);
    segment.count_left_out(PoolRecord::layout, true);
    segment.count_left_out(ArenaRecord::layout, true);
    segment.count_left_out(CountersRecord::layout, true);
    segment.count_left_out(ScopeRecord::layout, true);
    segment.count_left_out(DeviceRecord::layout, true);
    for (int i = 0; i < 3; ++i) segment.count_left_out(PlannedRecord::layout, true);
    segment.count_left_out(DeviceStreamRecord::layout, true);
    segment.count_left_out(DeviceStreamRecord::layout, true);
    segment.count_left_out(PoolRecord::layout, false);
    segment.count_left_out(ArenaRecord::layout, false);
    const SegmentHeader& header = *segment.header();
    EXPECT_EQ(header.region<PoolRecord>().left_out, 1U);
    EXPECT_EQ(header.region<ArenaRecord>().left_out, 0U);
    EXPECT_EQ(header.region<CountersRecord>().left_out, 1U);
    EXPECT_EQ(header.region<ScopeRecord>().left_out, 1U);
    EXPECT_EQ(header.region<DeviceRecord>().left_out, 1U);
    EXPECT_EQ(header.region<DeviceStreamRecord>().left_out, 2U);
    EXPECT_EQ(header.region<PlannedRecord>().left_out, 3U);
}

// A pool that found no memory for a segment may live until there is one.
TEST(Segment, CountsObjectsLeftOutBeforeCreation) {
    OwnSegment segment;
    segment.count_left_out(PoolRecord::layout, true);
    segment.count_left_out(CountersRecord::layout, true);
    add_pool(segment, "pool", 0);
    EXPECT_EQ(segment.header()->region<PoolRecord>().left_out, 1U);
    segment.count_left_out(PoolRecord::layout, false);
    segment.count_left_out(CountersRecord::layout, false);
    EXPECT_EQ(segment.header()->region<PoolRecord>().left_out, 0U);
    EXPECT_EQ(segment.header()->region<CountersRecord>().left_out, 0U);
}

// Scopes ----------------------------------------------------------------------------------------

TEST(Segment, ScopesOfSameNameShareRecord) {
    OwnSegment segment;
    ScopeRecord* const forward = segment.find_or_add<ScopeRecord>("forward");
    ScopeRecord* const backward = segment.find_or_add<ScopeRecord>("backward");
    EXPECT_NE(forward, backward);
    EXPECT_EQ(segment.find_or_add<ScopeRecord>("forward"), forward);
    EXPECT_EQ(text(forward->name), "forward");
    EXPECT_NE(forward->id, backward->id);
    const std::string a(60, 'a');
    EXPECT_EQ(segment.find_or_add<ScopeRecord>(a),
              segment.find_or_add<ScopeRecord>(a.substr(0, 50)))
        << "only the stored part of a name counts";
}

TEST(Segment, ExcessScopesShareOther) {
    OwnSegment segment;
    std::set<ScopeRecord*> records;
    for (int i = 0; i < 64; ++i) {
        records.insert(segment.find_or_add<ScopeRecord>("scope " + std::to_string(i)));
    }
    EXPECT_EQ(records.size(), 64U);
    ScopeRecord* const other = segment.find_or_add<ScopeRecord>("one more");
    EXPECT_EQ(text(other->name), "other");
    EXPECT_EQ(records.count(other), 0U);
    EXPECT_EQ(segment.find_or_add<ScopeRecord>("scope 63") - other, 64);
}

// Concurrent readers ----------------------------------------------------------------------------

/// Returns whether a pool's record is consistent. The name of each pool in the test below is a
/// number, which is also its limit.
bool fits_together(const PoolRecord& pool) {
    const std::uint64_t id = pool.id.load(std::memory_order_relaxed);
    const std::uint64_t limit = pool.limit_bytes.load(std::memory_order_relaxed);
    char name[Name::bytes];
    load_name(pool.name, name);
    const std::uint64_t held = pool.totals.held_bytes.load(std::memory_order_relaxed);
    if (id == 0) return limit == 0 && name[0] == '\0' && held == 0;
    return name == std::to_string(limit);
}

TEST(Segment, UnchangedEvenEpochMeansConsistentRead) {
    OwnSegment segment;
    PoolRecord* const first = add_pool(segment, "1", 1);
    SegmentHeader& header = *segment.header();
    std::atomic<bool> over = false;
    const auto change = [&](std::uint64_t begin) {
        for (std::uint64_t i = begin; !over; ++i) {
            PoolRecord* const pool = add_pool(segment, std::to_string(i), i);
            pool->totals.held_bytes.store(i, std::memory_order_relaxed);
            segment.remove(*pool);
            // On a busy machine the thread is descheduled here rather than during a change.
            std::this_thread::yield();
        }
    };
    std::thread one(change, 1000);
    std::thread two(change, 5'000'000'000);
    unsigned consistent = 0;
    for (unsigned looks = 0; looks < 50'000'000 && consistent < 2000; ++looks) {
        const std::uint64_t before = header.epoch.load(std::memory_order_acquire);
        if (before % 2 != 0) {
            std::this_thread::yield();
            continue;
        }
        bool fits = true;
        for (const PoolRecord* pool = first; pool != first + 3; ++pool) {
            fits = fits && fits_together(*pool);
        }
        std::atomic_thread_fence(std::memory_order_acquire);
        if (header.epoch.load(std::memory_order_relaxed) != before) continue;
        ++consistent;
        ASSERT_TRUE(fits) << (over = true);
    }
    over = true;
    one.join();
    two.join();
    EXPECT_GT(consistent, 0U);
}

TEST(Segment, ThreadsGetDifferentRecords) {
    OwnSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    std::atomic<bool> shared = false;
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 1; thread <= 4; ++thread) {
        threads.emplace_back([&, thread] {
            for (int round = 0; round < 2000; ++round) {
                CountersRecord* const counters = add_slot(segment, *pool);
                ArenaRecord* const arena = add_arena(segment, "arena", 0, thread);
                if (counters->counters.large.parked_bytes.exchange(thread) != 0) shared = true;
                if (arena->words.used.exchange(thread) != 0) shared = true;
                std::this_thread::yield();
                if (counters->counters.large.parked_bytes != thread || arena->words.used != thread)
                    shared = true;
                segment.remove(*arena);
                segment.remove(*counters);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(shared);
    EXPECT_LE(segment.header()->region<CountersRecord>().used, 4U);
    EXPECT_LE(segment.header()->region<ArenaRecord>().used, 5U);
}

}  // namespace
}  // namespace tensorpool::statistics
