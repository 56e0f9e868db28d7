// The scratches of threads: their end, and the statistics that other threads see.

#include "arena/scratch/scratch_state.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "arena/scratch/scratch_tools.hpp"
#include "blocks/worker.hpp"
#include "limits/commit_budget.hpp"
#include "platform/platform.hpp"
#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using namespace testing;

std::size_t committed() {
    return limits::commit_budget().committed();
}

std::optional<ArenaStatistics> scratch_of(std::uint64_t thread) {
    const std::string name = "thread " + std::to_string(thread);
    for (const ArenaStatistics& one : take_snapshot().scratches) {
        if (one.name == name) return one;
    }
    return std::nullopt;
}

TEST(ScratchOfThread, IsGivenBackWhenTheThreadEnds) {
    const std::size_t before = committed();
    std::uint64_t thread = 0;
    in_new_thread([&] {
        thread = platform::current_thread_id();
        EXPECT_FALSE(scratch_of(thread));
        fill(Scratch::local().allocate(5 * mib), 5 * mib, 1);
        EXPECT_TRUE(scratch_of(thread));
        EXPECT_EQ(committed(), before + 5 * mib + 512 * kib);
    });
    EXPECT_FALSE(scratch_of(thread));
    EXPECT_EQ(committed(), before);
}

TEST(ScratchOfThread, ThousandThreadsLeaveNothing) {
    const std::size_t before = committed();
    const std::size_t alive = take_snapshot().scratches.size();
    for (int i = 0; i < 1000; ++i) {
        in_new_thread([] {
            const ScratchScope scope("ScratchOfThread.thousand");
            Scratch::local().allocate(600 * kib);
        });
    }
    EXPECT_EQ(committed(), before);
    EXPECT_EQ(take_snapshot().scratches.size(), alive);
}

struct UsesScratchWhenItEnds {
    std::atomic<bool>* worked = nullptr;
    ~UsesScratchWhenItEnds() {
        if (worked == nullptr) return;
        const ScratchScope scope("ScratchOfThread.last");
        *worked = is_filled(fill(Scratch::local().allocate(mib), mib, 1), mib, 1);
    }
};

TEST(ScratchOfThread, ThreadLocalDestructorMayUseIt) {
    const std::size_t before = committed();
    for (const bool used_before : {true, false}) {
        std::atomic<bool> worked = false;
        in_new_thread([&] {
            static thread_local UsesScratchWhenItEnds object;
            object.worked = &worked;
            if (used_before) Scratch::local().allocate(100);
        });
        EXPECT_TRUE(worked);
        EXPECT_EQ(committed(), before);
    }
}

std::atomic<bool> worked_after_all = false;
void use_after_all(void*) {
    worked_after_all = detail::local_scratch == nullptr &&
                       is_filled(fill(Scratch::local().allocate(mib), mib, 1), mib, 1);
}

TEST(ScratchOfThread, MayBeUsedAfterItWasGivenBack) {
    in_new_thread([] { Scratch::local(); });  // creates its key, which is older and destroyed first
    const std::size_t before = committed();
    pthread_key_t key{};
    ASSERT_EQ(pthread_key_create(&key, use_after_all), 0);
    in_new_thread([&] {
        Scratch::local().allocate(100);
        pthread_setspecific(key, &key);
    });
    EXPECT_TRUE(worked_after_all);
    EXPECT_EQ(committed(), before);
    pthread_key_delete(key);
}

TEST(ScratchOfThread, SnapshotListsItByNameWhileItExists) {
    Worker worker;
    std::uint64_t thread = 0;
    worker.does([&] {
        thread = platform::current_thread_id();
        Scratch::local().allocate(100);
        Scratch::local().allocate(mib);
    });
    const std::optional<ArenaStatistics> statistics = scratch_of(thread);
    ASSERT_TRUE(statistics);
    EXPECT_EQ(statistics->kind, ArenaStatistics::Kind::scratch);
    EXPECT_EQ(statistics->used_bytes, mib + 128);
    EXPECT_EQ(statistics->peak_used_bytes, mib + 128);
    EXPECT_EQ(statistics->capacity_bytes, mib + 512 * kib);
    EXPECT_EQ(statistics->growths, 2U);
    EXPECT_TRUE(JsonReader::read(to_json(take_snapshot())));
    EXPECT_NE(to_text(take_snapshot()).find("thread " + std::to_string(thread)), std::string::npos);
    worker.does([] { Scratch::local().reset(); });
    EXPECT_EQ(scratch_of(thread)->used_bytes, 0U);
}

TEST(ScratchOfThread, SnapshotMayBeTakenWhileItChanges) {
    std::atomic<bool> over = false;
    std::atomic<std::uint64_t> thread = 0;
    std::thread works([&] {
        thread = platform::current_thread_id();
        for (std::size_t round = 0; !over; ++round) {
            const ScratchScope scope("ScratchOfThread.watched");
            for (std::size_t i = 0; i < round % 20; ++i) {
                const ScratchScope inner;
                Scratch::local().allocate((i + 1) * 100 * kib);
                Scratch::local().allocate(100 * kib, 8192);
            }
            if (round % 7 == 0) Scratch::local().trim();
        }
    });
    for (unsigned seen = 0; seen < 300;) {
        const std::optional<ArenaStatistics> statistics = scratch_of(thread);
        if (!statistics) continue;
        ++seen;
        EXPECT_LE(statistics->used_bytes, statistics->capacity_bytes);
        EXPECT_LE(statistics->used_bytes, statistics->peak_used_bytes);
        EXPECT_LT(statistics->capacity_bytes, 100 * mib);
    }
    over = true;
    works.join();
}

TEST(ScratchOfThread, SnapshotsMayBeTakenWhileThreadsStartAndEnd) {
    const std::size_t alive = take_snapshot().scratches.size();
    std::vector<std::thread> threads;
    std::atomic<unsigned> working = 2;
    for (int number = 0; number < 2; ++number) {
        threads.emplace_back([&] {
            for (int i = 0; i < 200; ++i) in_new_thread([] { Scratch::local().allocate(mib); });
            --working;
        });
    }
    while (working != 0) EXPECT_LE(take_snapshot().scratches.size(), alive + 2);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(take_snapshot().scratches.size(), alive);
}

}  // namespace
}  // namespace tensorpool
