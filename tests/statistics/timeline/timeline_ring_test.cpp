#include "statistics/timeline/timeline_ring.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <thread>
#include <vector>

namespace tensorpool::statistics {
namespace {

/// A ring with its own head.
struct Ring {
    explicit Ring(std::size_t size) : records(size) {}

    bool write(std::uint64_t bytes, const char* name = "") {
        EntryWords words;
        words.time_ns = words.thread = words.bytes = bytes;
        words.what = static_cast<std::uint64_t>(EntryKind::mark);
        words.name = pack_entry_name(name);
        return write_words(records, head, words);
    }
    TimelinePart read(std::uint64_t since = 0) const {
        return read_entries(records, head, {}, since);
    }

    std::vector<EntryRecord> records;
    Counter head = 0;
};

std::vector<std::uint64_t> bytes_of(const TimelinePart& part) {
    std::vector<std::uint64_t> bytes;
    for (const TimelineEntry& entry : part.entries) bytes.push_back(entry.bytes);
    return bytes;
}

TEST(TimelineRing, IsInitiallyEmpty) {
    const TimelinePart part = Ring(4).read();
    EXPECT_TRUE(part.entries.empty());
    EXPECT_EQ(part.lost, 0U);
    EXPECT_EQ(part.last, 0U);
}

TEST(TimelineRing, EntriesAreInOrderOfWriting) {
    Ring ring(4);
    for (std::uint64_t i = 1; i <= 3; ++i) EXPECT_TRUE(ring.write(i * 10));
    const TimelinePart part = ring.read();
    EXPECT_EQ(bytes_of(part), (std::vector<std::uint64_t>{10, 20, 30}));
    EXPECT_EQ(part.entries.front().number, 1U);
    EXPECT_EQ(part.last, 3U);
    EXPECT_EQ(part.lost, 0U);
}

TEST(TimelineRing, FullRingOverwritesOldestAndCountsLost) {
    Ring ring(4);
    for (std::uint64_t i = 1; i <= 10; ++i) ring.write(i);
    const TimelinePart part = ring.read();
    EXPECT_EQ(bytes_of(part), (std::vector<std::uint64_t>{7, 8, 9, 10}));
    EXPECT_EQ(part.lost, 6U);
    EXPECT_EQ(part.last, 10U);
}

TEST(TimelineRing, NextReadReturnsOnlyNewEntries) {
    Ring ring(4);
    ring.write(1);
    const std::uint64_t last = ring.read().last;
    EXPECT_TRUE(ring.read(last).entries.empty());
    EXPECT_EQ(ring.read(last).last, last);
    ring.write(2);
    EXPECT_EQ(bytes_of(ring.read(last)), std::vector<std::uint64_t>{2});
    EXPECT_EQ(ring.read(last).lost, 0U);
}

TEST(TimelineRing, WriterDelayedForOnePassGivesUp) {
    Ring ring(2);
    for (std::uint64_t i = 1; i <= 4; ++i) ring.write(i);
    ring.head = 1;
    EXPECT_FALSE(ring.write(2)) << "the fourth entry is in its position";
    ring.head = 4;
    EXPECT_EQ(bytes_of(ring.read()), (std::vector<std::uint64_t>{3, 4}));
}

TEST(TimelineRing, InterruptedWriterDoesNotBlockOthers) {
    Ring ring(2);
    ring.write(1);
    // the writer of the second entry is interrupted
    ring.records[1].ticket = busy_ticket(++ring.head);
    EXPECT_TRUE(ring.write(3));
    EXPECT_FALSE(ring.write(4)) << "in its position";
    EXPECT_TRUE(ring.write(5));
    EXPECT_EQ(bytes_of(ring.read(2)), std::vector<std::uint64_t>{5});
    EXPECT_EQ(ring.read(2).lost, 2U);
}

TEST(TimelineRing, IncompleteLastEntryIsLeftForNextRead) {
    Ring ring(4);
    ring.write(1);
    const std::uint64_t number = ++ring.head;
    EntryRecord& record = ring.records[place_of(number, 4)];
    for (const std::uint64_t ticket : {std::uint64_t{0}, busy_ticket(number)}) {
        record.ticket = ticket;
        const TimelinePart part = ring.read();
        EXPECT_EQ(bytes_of(part), std::vector<std::uint64_t>{1});
        EXPECT_EQ(part.last, 1U);
        EXPECT_EQ(part.lost, 0U);
    }
    record.bytes = 2;
    record.ticket = whole_ticket(number);
    EXPECT_EQ(bytes_of(ring.read(1)), std::vector<std::uint64_t>{2});
}

TEST(TimelineRing, IncompleteEntryBeforeCompleteOneIsLost) {
    Ring ring(4);
    ring.write(1);
    ++ring.head;
    ring.write(3);
    const TimelinePart part = ring.read();
    EXPECT_EQ(bytes_of(part), (std::vector<std::uint64_t>{1, 3}));
    EXPECT_EQ(part.lost, 1U);
    EXPECT_EQ(part.last, 3U);
}

TEST(TimelineRing, NamesAreTruncatedBeforePartialCharacter) {
    Ring ring(4);
    ring.write(1, "exactly twenty-three b.");
    ring.write(2, "more than twenty-three bytes");
    ring.write(3, "a name cut in a letter \xC3\xA4");
    ring.write(4, "a name cut in a lette\xE2\x82\xAC");
    const TimelinePart part = ring.read();
    EXPECT_EQ(part.entries[0].name, "exactly twenty-three b.");
    EXPECT_EQ(part.entries[1].name, "more than twenty-three ");
    EXPECT_EQ(part.entries[2].name, "a name cut in a letter ");
    EXPECT_EQ(part.entries[3].name, "a name cut in a lette");
}

TEST(TimelineRing, TimesAreWallClockTimes) {
    Ring ring(4);
    ring.write(1'000'000'007);
    ring.write(999'999'999);
    const SegmentTimes times = {.made_ns = 1'000'000'000, .made_unix_ns = 5'000'000'000'000};
    const TimelinePart part = read_entries(ring.records, ring.head, times, 0);
    EXPECT_EQ(part.entries[0].time_ns, 5'000'000'000'007U);
    EXPECT_EQ(part.entries[1].time_ns, 4'999'999'999'999U);
}

TEST(TimelineRing, ReaderSurvivesAnyContent) {
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    Ring ring(4);
    for (const std::uint64_t filler :
         {std::uint64_t{0}, std::uint64_t{0x4141414141414141}, largest}) {
        for (EntryRecord& record : ring.records) {
            for (Counter* const word :
                 {&record.ticket, &record.time_ns, &record.thread, &record.what, &record.bytes}) {
                word->store(filler);
            }
            for (Counter& word : record.name) word.store(filler);
        }
        for (const std::uint64_t head :
             {std::uint64_t{0}, std::uint64_t{3}, filler / 2, largest - 1, largest}) {
            for (const std::uint64_t since : {std::uint64_t{0}, head / 2, head, largest}) {
                const TimelinePart part = read_entries(ring.records, head, {}, since);
                EXPECT_LE(part.entries.size(), 4U);
                EXPECT_LE(part.last, head);
            }
        }
    }
}

TEST(TimelineRing, AnyWordsGiveAValidEntry) {
    Ring ring(1);
    ring.write(1);
    ring.records[0].what = ~std::uint64_t{0};
    for (Counter& word : ring.records[0].name) word = ~std::uint64_t{0};
    const TimelinePart part = ring.read();
    ASSERT_EQ(part.entries.size(), 1U);
    EXPECT_EQ(part.entries[0].kind, EntryKind{});
    EXPECT_EQ(part.entries[0].limit, LimitKind::none);
    EXPECT_EQ(part.entries[0].name, std::string(23, '\xFF'));
}

TEST(TimelineRing, CopyContainsOnlyCompleteEarlierEntries) {
    Ring ring(4);
    for (std::uint64_t i = 1; i <= 4; ++i) ring.write(i);
    const std::uint64_t head = ring.head;
    ring.records[1].ticket = busy_ticket(2);
    ring.write(5);  // written while it is copied
    Ring copy(4);
    copy_entries(ring.records, copy.records, head);
    copy.head = head;
    EXPECT_EQ(bytes_of(copy.read()), (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(copy.read().lost, 2U);
    for (std::uint64_t i = 5; i <= 8; ++i) EXPECT_TRUE(copy.write(i)) << i;
    EXPECT_EQ(bytes_of(copy.read()), (std::vector<std::uint64_t>{5, 6, 7, 8}));
}

// All words of an entry are the same number, so that a mixture is detected.
bool is_of_one_writer(const TimelineEntry& entry) {
    return entry.time_ns == entry.bytes && entry.thread == entry.bytes &&
           entry.name == std::to_string(entry.bytes);
}

TEST(TimelineRing, ConcurrentWritersDoNotMixEntries) {
    constexpr std::uint64_t writers = 3, each = 20'000;
    Ring ring(4);
    std::atomic<std::uint64_t> written = 0;
    std::vector<std::thread> threads;
    for (std::uint64_t writer = 0; writer < writers; ++writer) {
        threads.emplace_back([&, writer] {
            for (std::uint64_t i = 0; i < each; ++i) {
                const std::uint64_t number = writer * each + i;
                written += ring.write(number, std::to_string(number).c_str()) ? 1 : 0;
            }
        });
    }
    std::uint64_t since = 0, read = 0, lost = 0;
    for (bool done = false; !done;) {
        done = ring.head == writers * each;
        const TimelinePart part = ring.read(since);
        for (const TimelineEntry& entry : part.entries) {
            ASSERT_TRUE(is_of_one_writer(entry)) << to_json(entry);
            ASSERT_GT(entry.number, since);
        }
        ASSERT_EQ(part.last - since, part.entries.size() + part.lost);
        read += part.entries.size();
        lost += part.lost;
        since = part.last;
    }
    for (std::thread& thread : threads) thread.join();
    const TimelinePart rest = ring.read(since);
    EXPECT_LE(read + rest.entries.size(), written);
    EXPECT_GT(read, 0U);
    for (const EntryRecord& record : ring.records) EXPECT_EQ(record.ticket % 2, 0U);
}

TEST(TimelineRing, ReaderNeverReturnsPartialEntry) {
    constexpr std::uint64_t entries = 500'000;
    Ring ring(1);
    std::thread writer([&] {
        for (std::uint64_t i = 0; i < entries; ++i) ring.write(i);
    });
    std::uint64_t mixed = 0;
    while (ring.head != entries) {
        EntryWords words;
        const std::uint64_t number = ring.records[0].ticket / 2;
        if (number == 0 || read_words(ring.records, number, words) != EntryState::whole) continue;
        mixed += words.time_ns == words.bytes && words.thread == words.bytes ? 0 : 1;
    }
    writer.join();
    EXPECT_EQ(mixed, 0U);
}

}  // namespace
}  // namespace tensorpool::statistics
