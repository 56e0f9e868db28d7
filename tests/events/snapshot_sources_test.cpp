#include "events/snapshot_sources.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tensorpool::events {
namespace {

/// Adds one element, as a pool, an arena or a scratch does, and records whether there was room.
class NamedSource final : public SnapshotSource {
public:
    using Group = std::vector<ArenaStatistics> Snapshot::*;

    explicit NamedSource(std::string name, Group group = &Snapshot::arenas)
        : name_(std::move(name)), group_(group) {}

    void add_to(Snapshot& snapshot) const override {
        std::vector<ArenaStatistics>& group = snapshot.*group_;
        if (group.size() == group.capacity()) had_room_ = false;
        ArenaStatistics statistics;
        std::snprintf(statistics.name, sizeof statistics.name, "%s", name_.c_str());
        group.push_back(statistics);
    }
    Identity identify() const noexcept override { return {TraceSource::arena, 7, name_}; }
    std::size_t capacity() const noexcept override { return 0; }
    bool had_room() const { return had_room_; }

private:
    std::string name_;
    Group group_;
    mutable std::atomic<bool> had_room_ = true;
};

class Entered {
public:
    Entered(SnapshotSources& sources, const std::string& name) : sources_(sources), source_(name) {
        sources_.enter(source_);
    }
    ~Entered() { sources_.leave(source_); }
    bool had_room() const { return source_.had_room(); }

private:
    SnapshotSources& sources_;
    NamedSource source_;
};

std::string names_of(const std::vector<ArenaStatistics>& group) {
    std::string names;
    for (const ArenaStatistics& one : group) names += one.name;
    return names;
}

std::string names_in(const SnapshotSources& sources) {
    return names_of(sources.take().arenas);
}

TEST(SnapshotSources, AreInitiallyEmpty) {
    const SnapshotSources sources;
    const Snapshot snapshot = sources.take();
    EXPECT_TRUE(snapshot.pools.empty() && snapshot.arenas.empty() && snapshot.scratches.empty());
}

TEST(SnapshotSources, AreInOrderOfEntering) {
    SnapshotSources sources;
    const Entered a(sources, "a"), b(sources, "b"), c(sources, "c");
    EXPECT_EQ(names_in(sources), "abc");
}

TEST(SnapshotSources, MayLeaveFromAnyPositionAndReenter) {
    SnapshotSources sources;
    NamedSource a("a"), b("b"), c("c"), d("d");
    for (NamedSource* const source : {&a, &b, &c, &d}) sources.enter(*source);
    sources.leave(b);
    EXPECT_EQ(names_in(sources), "acd") << "from the middle";
    sources.leave(a);
    EXPECT_EQ(names_in(sources), "cd") << "the first";
    sources.leave(d);
    EXPECT_EQ(names_in(sources), "c") << "the last";
    sources.enter(b);
    EXPECT_EQ(names_in(sources), "cb");
    sources.leave(c);
    sources.leave(b);
    EXPECT_EQ(names_in(sources), "") << "all";
    sources.enter(d);
    EXPECT_EQ(names_in(sources), "d");
    sources.leave(d);
}

TEST(SnapshotSources, EachAddsToItsGroup) {
    SnapshotSources sources;
    NamedSource arena("a"), scratch("s", &Snapshot::scratches);
    sources.enter(scratch);
    sources.enter(arena);
    const Snapshot snapshot = sources.take();
    EXPECT_EQ(names_of(snapshot.arenas), "a");
    EXPECT_EQ(names_of(snapshot.scratches), "s");
    EXPECT_TRUE(snapshot.pools.empty());
    sources.leave(scratch);
    sources.leave(arena);
}

TEST(SnapshotSources, NothingIsAllocatedUnderLock) {
    SnapshotSources sources;
    std::vector<std::unique_ptr<Entered>> entered;
    for (unsigned i = 0; i < 1000; ++i) {
        entered.push_back(std::make_unique<Entered>(sources, std::to_string(i)));
    }
    EXPECT_EQ(sources.take().arenas.size(), 1000U);
    for (const auto& source : entered) EXPECT_TRUE(source->had_room());
}

TEST(SnapshotSources, TakeWaitsForLock) {
    SnapshotSources sources;
    const Entered a(sources, "a");
    std::atomic<bool> taken = false;
    sources.lock();
    std::thread other([&] {
        EXPECT_EQ(names_in(sources), "a");
        taken = true;
    });
    for (int turn = 0; turn < 10'000 && !taken; ++turn) std::this_thread::yield();
    EXPECT_FALSE(taken);
    sources.unlock();
    other.join();
    EXPECT_TRUE(taken);
}

// One source stays all the time. Others enter and leave, in numbers above and below the room that a
// snapshot has made.
TEST(SnapshotSourcesThreads, PermanentSourceIsInEverySnapshotOnce) {
    SnapshotSources sources;
    const Entered stays(sources, "!");
    std::atomic<bool> stop = false;
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < 3; ++thread) {
        threads.emplace_back([&] {
            for (unsigned round = 0; !stop; ++round) {
                std::vector<std::unique_ptr<Entered>> mine;
                for (unsigned i = 0; i < round % 20; ++i) {
                    mine.push_back(std::make_unique<Entered>(sources, "x"));
                }
                for (const auto& source : mine) EXPECT_TRUE(source->had_room());
            }
        });
    }
    for (unsigned i = 0; i < 5000; ++i) {
        const std::string names = names_in(sources);
        ASSERT_EQ(names[0], '!');
        ASSERT_EQ(names.find_first_not_of('x', 1), std::string::npos);
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(names_in(sources), "!");
    EXPECT_TRUE(stays.had_room());
}

TEST(TakeSnapshot, ContainsSourcesOfProcess) {
    const Entered source(snapshot_sources(), "mine");
    EXPECT_EQ(names_of(take_snapshot().arenas), "mine");
}

}  // namespace
}  // namespace tensorpool::events
