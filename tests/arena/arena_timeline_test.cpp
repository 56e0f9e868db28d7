// The entries of arenas and scratches on the timeline.

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/scratch.hpp>
#include <tensorpool/timeline.hpp>

#include "arena/arena_test.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using namespace testing;

struct Entry {
    EntryKind kind;
    LimitKind limit;
    std::uint64_t bytes;
    bool operator==(const Entry&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Entry& entry) {
    return out << to_string(entry.kind) << ' ' << to_string(entry.limit) << ' ' << entry.bytes;
}

/// The entries with this name since its construction.
class Timeline {
public:
    explicit Timeline(std::string name) : name_(std::move(name)), begin_(timeline_since().last) {}

    std::vector<Entry> entries() const {
        std::vector<Entry> all;
        for (const TimelineEntry& entry : timeline_since(begin_).entries) {
            if (entry.name == name_) all.push_back({entry.kind, entry.limit, entry.bytes});
        }
        return all;
    }

private:
    std::string name_;
    std::uint64_t begin_;
};

TEST(ArenaTimeline, RecordsGrowthAndGiveBacks) {
    const Timeline timeline("mine");
    ArenaOptions options = bare_options();
    options.initial_capacity = 2 * mib;
    Arena arena(options);
    arena.allocate(mib);
    arena.allocate(4 * mib);
    arena.reset();
    arena.trim();
    arena.trim();
    const std::vector<Entry> expected = {{EntryKind::growth, LimitKind::none, 2 * mib},
                                         {EntryKind::growth, LimitKind::none, 3 * mib},
                                         {EntryKind::give_back, LimitKind::none, 5 * mib}};
    EXPECT_EQ(timeline.entries(), expected);
}

TEST(ArenaTimeline, RecordsTheLimitOfARefusal) {
    const Timeline timeline("mine");
    ArenaOptions options = bare_options();
    Arena arena(options);
    EXPECT_EQ(arena.try_allocate(2 * gib), nullptr);
    EXPECT_THROW(arena.allocate(100 * mib), AllocationError);
    EXPECT_THROW(arena.reserve(65 * mib), AllocationError);
    const std::vector<Entry> expected = {{EntryKind::limit, LimitKind::request, 2 * gib},
                                         {EntryKind::limit, LimitKind::capacity, 100 * mib},
                                         {EntryKind::limit, LimitKind::capacity, 65 * mib}};
    EXPECT_EQ(timeline.entries(), expected);
}

TEST(ArenaTimeline, RecordsFailedConstruction) {
    const Timeline timeline("mine");
    ArenaOptions options = bare_options();
    options.max_capacity = SIZE_MAX;
    EXPECT_THROW(Arena{options}, AllocationError);
    const std::vector<Entry> expected = {{EntryKind::failure, LimitKind::address_space, SIZE_MAX}};
    EXPECT_EQ(timeline.entries(), expected);
}

TEST(ArenaTimeline, EndOfABufferCountsAsALimit) {
    const Timeline timeline("buffer");
    alignas(64) std::byte buffer[128];
    Arena arena = Arena::over(buffer);
    arena.allocate(64);
    EXPECT_EQ(arena.try_allocate(100), nullptr);
    const std::vector<Entry> expected = {{EntryKind::limit, LimitKind::capacity, 100}};
    EXPECT_EQ(timeline.entries(), expected);
}

TEST(ScratchTimeline, RecordsGrowthJoiningAndTrimming) {
    std::thread([] {
        const Timeline timeline("thread " + std::to_string(platform::current_thread_id()));
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope;
            scratch.allocate(100);
            scratch.allocate(mib);
        }
        scratch.trim();
        const std::vector<Entry> expected = {
            {EntryKind::growth, LimitKind::none, 512 * kib},
            {EntryKind::growth, LimitKind::none, mib},
            {EntryKind::give_back, LimitKind::none, mib + 512 * kib},
            {EntryKind::growth, LimitKind::none, 16 * mib},
            {EntryKind::give_back, LimitKind::none, 16 * mib}};
        EXPECT_EQ(timeline.entries(), expected);
    }).join();
}

TEST(ScratchTimeline, RecordsTheLimitOfARefusal) {
    const Timeline timeline("a caller's buffer");
    alignas(64) std::byte buffer[128];
    Scratch scratch = Scratch::over(buffer);
    EXPECT_THROW(scratch.allocate(129), AllocationError);
    EXPECT_THROW(scratch.allocate(SIZE_MAX / 2), AllocationError);
    const std::vector<Entry> expected = {{EntryKind::limit, LimitKind::capacity, 129},
                                         {EntryKind::limit, LimitKind::request, SIZE_MAX / 2}};
    EXPECT_EQ(timeline.entries(), expected);
}

}  // namespace
}  // namespace tensorpool
