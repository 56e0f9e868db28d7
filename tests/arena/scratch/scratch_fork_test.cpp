// The state of scratches in the child of a fork.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "arena/scratch/scratch_tools.hpp"
#include "blocks/worker.hpp"
#include "limits/commit_budget.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using namespace testing;

bool works() {
    const ScratchScope scope("ScratchFork.works");
    return is_filled(fill(Scratch::local().allocate(2 * mib), 2 * mib, 1), 2 * mib, 1);
}

TEST(ScratchFork, ChildKeepsTheScratchOfItsThread) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        void* const block = fill(scratch.allocate(mib), mib, 3);
        EXPECT_EQ(exit_code_of_child([&] {
                      if (&Scratch::local() != &scratch || scratch.used() != mib) return 1;
                      if (!is_filled(block, mib, 3)) return 2;
                      fill(block, mib, 4);
                      return works() && scratch.used() == mib ? 0 : 3;
                  }),
                  0);
        EXPECT_TRUE(is_filled(block, mib, 3));
    });
}

TEST(ScratchFork, ChildGivesBackScratchesOfOtherThreads) {
    Worker one;
    Worker other;
    const std::vector<ArenaStatistics> alive = take_snapshot().scratches;
    std::size_t before = limits::commit_budget().committed();
    for (const ArenaStatistics& statistics : alive) before -= statistics.capacity_bytes;
    one.does([] { Scratch::local().allocate(mib); });
    other.does([] { Scratch::local().allocate(100 * kib); });
    in_new_thread([before] {
        EXPECT_EQ(exit_code_of_child([before] {
                      if (!take_snapshot().scratches.empty()) return 1;
                      if (limits::commit_budget().committed() != before) return 2;
                      if (!works()) return 3;
                      return take_snapshot().scratches.size() == 1 ? 0 : 4;
                  }),
                  0);
    });
    EXPECT_EQ(take_snapshot().scratches.size(), alive.size() + 2);
    one.does([] { EXPECT_EQ(Scratch::local().used(), mib); });
}

TEST(ScratchFork, ChildMayForkAgain) {
    Worker one;
    one.does([] { Scratch::local().allocate(mib); });
    EXPECT_EQ(exit_code_of_child(
                  [] { return works() ? exit_code_of_child([] { return works() ? 0 : 1; }) : 2; }),
              0);
}

// The thread sanitizer supports no threads after a fork of a process with threads.
#ifndef __SANITIZE_THREAD__
TEST(ScratchFork, ChildMayHaveThreads) {
    Worker one;
    one.does([] { Scratch::local().allocate(mib); });
    EXPECT_EQ(exit_code_of_child([] {
                  const std::size_t before = limits::commit_budget().committed();
                  bool thread_works = false;
                  in_new_thread([&] { thread_works = works(); });
                  if (!thread_works) return 1;
                  return limits::commit_budget().committed() == before ? 0 : 2;
              }),
              0);
}
#endif

// Not under sanitizers: their malloc does not survive a fork during another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void use_all(std::size_t round) {
    Scratch& scratch = Scratch::local();
    const ScratchScope scope("ScratchFork." + std::to_string(round % 1000));
    const Scratch::Mark mark = scratch.mark();
    for (std::size_t i = 0; i < 50; ++i) {
        scratch.allocate(64 << (i % 15));
        scratch.release_to(scratch.mark());
    }
    scratch.release_to(mark);
    if (round % 5 == 0) scratch.reserve(mib);
}

TEST(ScratchFork, ChildrenOfABusyProcessWork) {
    std::atomic<bool> over = false;
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
        for (std::size_t round = 0; !over; ++round) use_all(round);
    });
    threads.emplace_back([&] {
        for (std::size_t round = 0; !over; ++round) in_new_thread([round] { use_all(round); });
    });
    threads.emplace_back([&] {
        while (!over) static_cast<void>(take_snapshot());
    });
    for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(exit_code_of_child(
                      [] { return works() && !scratch_report().operators.empty() ? 0 : 1; }),
                  0);
    }
    over = true;
    for (std::thread& thread : threads) thread.join();
}
#endif

}  // namespace
}  // namespace tensorpool
