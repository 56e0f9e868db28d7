#include "pages/record_arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

namespace tensorpool::pages {
namespace {

struct TakenRecord {
    unsigned char* begin;
    std::size_t bytes;
};

bool is_zero(const TakenRecord& record) {
    return std::all_of(record.begin, record.begin + record.bytes, [](auto c) { return c == 0; });
}

/// Returns whether no two records overlap.
bool are_apart(std::vector<TakenRecord> records) {
    std::sort(records.begin(), records.end(),
              [](const TakenRecord& a, const TakenRecord& b) { return a.begin < b.begin; });
    for (std::size_t i = 1; i < records.size(); ++i) {
        if (records[i - 1].begin + records[i - 1].bytes > records[i].begin) return false;
    }
    return true;
}

TEST(RecordArena, HoldsNothingBeforeItsFirstRecord) {
    EXPECT_EQ(RecordArena().bytes_held(), 0U);
}

TEST(RecordArena, RecordsAreZeroAlignedAndDisjoint) {
    RecordArena arena;
    std::vector<TakenRecord> records;
    std::size_t bytes = 0;
    for (unsigned i = 0; i < 3000; ++i) {
        const std::size_t size = 1 + i * 37 % 500;
        const std::size_t alignment = std::size_t{1} << i % 7;
        auto* const begin = static_cast<unsigned char*>(arena.allocate(size, alignment));
        ASSERT_NE(begin, nullptr);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(begin) % alignment, 0U);
        records.push_back({begin, size});
        ASSERT_TRUE(is_zero(records.back()));
        std::memset(begin, 0xA5, size);
        bytes += size;
    }
    EXPECT_TRUE(are_apart(records));
    EXPECT_GE(arena.bytes_held(), bytes);
    EXPECT_LE(arena.bytes_held(), bytes + bytes / 10 + 64 * 1024) << "little is lost to alignment";
}

TEST(RecordArena, LargeRecordGetsAChunkOfItsOwn) {
    RecordArena arena;
    std::vector<TakenRecord> records;
    for (const std::size_t size : {64U, 65'472U, 65'520U, 65'536U, 1'000'000U, 64U}) {
        auto* const begin = static_cast<unsigned char*>(arena.allocate(size, 64));
        ASSERT_NE(begin, nullptr);
        records.push_back({begin, size});
        ASSERT_TRUE(is_zero(records.back()));
        std::memset(begin, 0x5A, size);
    }
    EXPECT_TRUE(are_apart(records));
}

TEST(RecordArena, RefusesWithoutMemoryAndRecovers) {
    RecordArena arena;
    EXPECT_EQ(arena.allocate(std::size_t{1} << 60, 64), nullptr);
    EXPECT_EQ(arena.bytes_held(), 0U);
    EXPECT_NE(arena.allocate(64, 64), nullptr);
}

TEST(RecordArena, ThreadsGetDifferentRecords) {
    RecordArena arena;
    std::vector<std::vector<TakenRecord>> got(4);
    std::vector<std::thread> workers;
    for (auto& mine : got) {
        workers.emplace_back([&arena, &mine] {
            for (unsigned i = 0; i < 2000; ++i) {
                auto* const begin = static_cast<unsigned char*>(arena.allocate(48, 16));
                if (begin == nullptr) return;
                std::memset(begin, 1, 48);
                mine.push_back({begin, 48});
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    std::vector<TakenRecord> all;
    for (const auto& mine : got) all.insert(all.end(), mine.begin(), mine.end());
    EXPECT_EQ(all.size(), 8000U);
    EXPECT_TRUE(are_apart(all));
}

}  // namespace
}  // namespace tensorpool::pages
