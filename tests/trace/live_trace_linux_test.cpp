#include <tensorpool/live_trace.hpp>
#include <tensorpool/tensorpool.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "platform/tools/memory_tools.hpp"
#include "support/child_process.hpp"
#include "support/wait_until.hpp"
#include "trace/inline_path.hpp"
#include "trace/moved_clock.hpp"
#include "trace/read_trace.hpp"
#include "trace/ring_layout.hpp"

extern "C" {
int __real_clock_gettime(clockid_t clock, timespec* now);
int __wrap_clock_gettime(clockid_t clock, timespec* now) {
    const int result = __real_clock_gettime(clock, now);
    if (clock == CLOCK_MONOTONIC) now->tv_sec += tensorpool::testing::moved_seconds;
    if (clock == CLOCK_REALTIME) now->tv_sec += tensorpool::testing::moved_wall_seconds;
    return result;
}
}

namespace tensorpool {
namespace {

using testing::ReadTrace;

std::uint64_t own_number() {
    return static_cast<std::uint64_t>(::getpid());
}

std::uint64_t address_of(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p);
}

/// Requests a recording of this process. Its first slow path makes the control.
LiveTrace request_from_self(std::uint64_t stack_interval = 0) {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.allocate(std::size_t{1} << 20));
    return LiveTrace::ask(own_number(), stack_interval);
}

/// Allocates a large block, which takes the slow path, where requests are seen.
void take_slow_path() {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.allocate(std::size_t{1} << 20));
}

void end(LiveTrace& trace) {
    trace.stop();
    take_slow_path();
    EXPECT_TRUE(trace.has_ended());
}

TEST(LiveTrace, RecordsEachCallOfTheRecordingThread) {
    MemoryPool pool;
    LiveTrace trace = request_from_self();
    EXPECT_FALSE(trace.has_begun());
    void* const large = pool.allocate(100'000, 4096);
    void* const small = pool.allocate(100);
    pool.deallocate(small, 100);
    pool.deallocate(large);
    ReadTrace read;
    EXPECT_GT(trace.look([&](const TracePart& part) { read.add(part); }), 4U);
    EXPECT_TRUE(trace.has_begun());
    end(trace);

    ASSERT_EQ(read.processes.size(), 1U);
    EXPECT_EQ(read.processes[0].process, own_number());
    EXPECT_EQ(read.processes[0].from_start, 0U);
    ASSERT_TRUE(read.sources.contains("global"));
    const auto allocations = read.entries(TraceAction::allocate);
    ASSERT_EQ(allocations.size(), 2U);
    EXPECT_EQ(allocations[0].address, address_of(large));
    EXPECT_EQ(allocations[0].bytes, 100'000U);
    EXPECT_EQ(allocations[0].alignment_log2, 12);
    EXPECT_EQ(allocations[1].address, address_of(small));
    EXPECT_EQ(allocations[1].bytes, 100U);
    const auto frees = read.entries(TraceAction::deallocate);
    ASSERT_EQ(frees.size(), 2U);
    EXPECT_EQ(frees[0].address, address_of(small));
    EXPECT_EQ(frees[0].bytes, 128U);
    EXPECT_EQ(frees[1].address, address_of(large));
    EXPECT_GE(frees[1].bytes, 100'000U);
    EXPECT_LE(allocations[0].cycles, allocations[1].cycles);
    EXPECT_LE(allocations[1].cycles, frees[0].cycles);
}

TEST(LiveTrace, RecordsThreadsThatExistedBefore) {
    MemoryPool pool;
    std::latch cached(1);
    std::latch requested(1);
    void* block = nullptr;
    std::thread thread([&] {
        for (int i = 0; i < 10; ++i) pool.deallocate(pool.allocate(100), 100);
        cached.count_down();
        requested.wait();
        block = pool.allocate(100);  // its magazine has one
        pool.deallocate(block, 100);
    });
    cached.wait();
    LiveTrace trace = request_from_self();
    take_slow_path();
    requested.count_down();
    thread.join();
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    const auto allocations = read.entries(TraceAction::allocate);
    EXPECT_TRUE(std::any_of(allocations.begin(), allocations.end(), [&](const TraceEntry& one) {
        return one.address == address_of(block) && one.bytes == 100;
    }));
}

/// Returns the capacities that were recorded for a source, in order.
std::vector<std::uint64_t> capacities_of(const ReadTrace& read, const std::string& name) {
    std::vector<std::uint64_t> bytes;
    for (const TraceEntry& one : read.entries(TraceAction::capacity)) {
        if (one.source == read.sources.at(name)) bytes.push_back(one.bytes);
    }
    return bytes;
}

TEST(LiveTrace, RecordsAPoolsCapacityAndEachChange) {
    PoolOptions options;
    options.name = "weights";
    MemoryPool pool(options);
    void* const first = pool.allocate(std::size_t{8} << 20);
    std::vector<std::uint64_t> held{pool.statistics().capacity_bytes};
    LiveTrace trace = request_from_self();
    take_slow_path();
    void* const second = pool.allocate(std::size_t{100} << 20);
    held.push_back(pool.statistics().capacity_bytes);
    pool.deallocate(second);
    pool.trim();
    held.push_back(pool.statistics().capacity_bytes);
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    pool.deallocate(first);
    EXPECT_LT(held[0], held[1]);
    EXPECT_LT(held[2], held[1]);
    EXPECT_EQ(capacities_of(read, "weights"), held);
}

/// Grows the calling thread's scratch, which records its capacity, and returns that.
std::size_t grown_scratch_capacity() {
    Scratch& scratch = Scratch::local();
    const ScratchScope scope(scratch);
    scratch.allocate(scratch.capacity() + 12'345);
    return scratch.capacity();
}

TEST(LiveTrace, RecordsCapacitiesOfArenasAndScratches) {
    LiveTrace trace = request_from_self();
    take_slow_path();
    ArenaOptions options;
    options.name = "batch";
    Arena arena(options);
    arena.allocate(std::size_t{3} << 20);
    std::vector<std::uint64_t> held{arena.capacity()};
    arena.reset();
    arena.trim();
    held.push_back(arena.capacity());
    std::vector<std::byte> buffer(10'000);
    const Arena over = Arena::over(buffer);
    const Scratch scratch = Scratch::over(buffer);
    const std::size_t own_capacity = grown_scratch_capacity();
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    EXPECT_EQ(capacities_of(read, "batch"), held);
    EXPECT_EQ(capacities_of(read, "buffer"), std::vector<std::uint64_t>{over.capacity()});
    EXPECT_EQ(capacities_of(read, "a caller's buffer"),
              std::vector<std::uint64_t>{scratch.capacity()});
    const auto all = read.entries(TraceAction::capacity);
    EXPECT_TRUE(
        std::ranges::any_of(all, [&](const TraceEntry& one) { return one.bytes == own_capacity; }));
}

TEST(LiveTrace, NamesArenasScratchesAndScopes) {
    ArenaOptions options;
    options.name = "batch";
    Arena arena(options);
    LiveTrace trace = request_from_self();
    take_slow_path();
    {
        const StatisticsScope scope("forward");
        const Arena::Mark mark = arena.mark();
        arena.allocate(1000);
        arena.release_to(mark);
        const ScratchScope inner;
        Scratch::local().allocate(500);
    }
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    ASSERT_TRUE(read.sources.contains("batch"));
    ASSERT_TRUE(read.sources.contains("forward"));
    const auto only = [&](TraceAction action) {
        const auto found = read.entries(action);
        EXPECT_EQ(found.size(), 1U) << static_cast<int>(action);
        return found.empty() ? TraceEntry{} : found[0];
    };
    EXPECT_EQ(only(TraceAction::scope_begin).source, read.sources["forward"]);
    EXPECT_EQ(only(TraceAction::scope_end).source, read.sources["forward"]);
    EXPECT_EQ(only(TraceAction::arena_mark).source, read.sources["batch"]);
    EXPECT_EQ(only(TraceAction::arena_allocate).bytes, 1000U);
    const TraceEntry release = only(TraceAction::arena_release);
    EXPECT_EQ(release.address, release.bytes);  // the beginning of the arena
    EXPECT_EQ(only(TraceAction::arena_allocate).address, release.address);
    EXPECT_EQ(only(TraceAction::scratch_mark).address, 0U);
    EXPECT_EQ(only(TraceAction::scratch_allocate).bytes, 500U);
    EXPECT_EQ(only(TraceAction::scratch_release).address, 0U);
}

TEST(LiveTrace, RecordsTheAllocationThatGrowsAnArena) {
    Arena arena;
    LiveTrace trace = request_from_self();
    arena.allocate(std::size_t{64} << 20);  // the inline path finds no room
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    const auto allocations = read.entries(TraceAction::arena_allocate);
    ASSERT_EQ(allocations.size(), 1U);
    EXPECT_EQ(allocations[0].bytes, std::size_t{64} << 20);
}

TEST(LiveTrace, RecordsRefusalsAndDestroyedPools) {
    LiveTrace trace = request_from_self();
    take_slow_path();
    {
        PoolOptions options;
        options.name = "small";
        options.max_capacity = std::size_t{1} << 20;
        MemoryPool pool(options);
        EXPECT_EQ(pool.try_allocate(std::size_t{64} << 20), nullptr);
    }
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    const auto refusals = read.entries(TraceAction::refuse);
    ASSERT_EQ(refusals.size(), 1U);
    EXPECT_EQ(refusals[0].bytes, std::size_t{64} << 20);
    EXPECT_EQ(refusals[0].source, read.sources["small"]);
    const auto gone = read.entries(TraceAction::gone);
    ASSERT_EQ(gone.size(), 1U);
    EXPECT_EQ(gone[0].source, read.sources["small"]);
}

TEST(LiveTrace, FullRingCountsDropsAndContinuesOnceRead) {
    MemoryPool pool;
    LiveTrace trace = request_from_self();
    take_slow_path();
    constexpr std::size_t pairs = trace::ring_entries;  // twice as many entries as the ring holds
    ReadTrace read;
    std::uint64_t last = 0;
    std::thread([&] {
        for (std::size_t i = 0; i < pairs; ++i) pool.deallocate(pool.allocate(100), 100);
        trace.look([&](const TracePart& part) { read.add(part); });
        void* const block = pool.allocate(200);
        last = address_of(block);
        pool.deallocate(block, 200);
    }).join();
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    std::uint64_t dropped = 0;
    for (const auto& [ring, count] : read.dropped) dropped += count;
    const std::size_t calls =
        read.entries(TraceAction::allocate).size() + read.entries(TraceAction::deallocate).size();
    // Plus two entries of take_slow_path, and two of the block of another size.
    EXPECT_EQ(calls + dropped, 2 * pairs + 2 + 2);
    EXPECT_GE(dropped, pairs);
    EXPECT_EQ(read.entries(TraceAction::allocate).back().address, last);
}

TEST(LiveTrace, RingsAreReusedByLaterThreads) {
    MemoryPool pool;
    LiveTrace trace = request_from_self();
    take_slow_path();
    for (std::size_t i = 0; i < 2 * trace::ring_count; ++i) {
        std::thread([&] { pool.deallocate(pool.allocate(100), 100); }).join();
    }
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    EXPECT_EQ(trace.threads_left_out(), 0U);
    EXPECT_LE(read.rings.size(), 3U);
    std::set<std::uint64_t> threads;
    for (const TraceEntry& one : read.entries(TraceAction::thread)) threads.insert(one.address);
    EXPECT_GT(threads.size(), trace::ring_count);
}

TEST(LiveTrace, CountsDropsInARingThatAnotherThreadFilled) {
    MemoryPool pool;
    LiveTrace trace = request_from_self();
    take_slow_path();
    const auto in_thread = [&](std::size_t pairs) {
        std::thread([&pool, pairs] {
            for (std::size_t i = 0; i < pairs; ++i) pool.deallocate(pool.allocate(100), 100);
        }).join();
    };
    in_thread(trace::ring_entries);
    in_thread(10);
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    std::uint64_t dropped = 0;
    for (const auto& [ring, count] : read.dropped) dropped += count;
    const std::size_t calls =
        read.entries(TraceAction::allocate).size() + read.entries(TraceAction::deallocate).size();
    EXPECT_EQ(calls + dropped, 2 * (trace::ring_entries + 10) + 2);  // two of take_slow_path
}

TEST(LiveTrace, CountsAThreadWithoutARingOnce) {
    MemoryPool pool;
    LiveTrace trace = request_from_self();
    take_slow_path();
    std::latch taken(trace::ring_count - 1);
    std::latch done(1);
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < trace::ring_count; ++i) {
        threads.emplace_back([&] {
            pool.deallocate(pool.allocate(100), 100);
            taken.count_down();
            done.wait();
        });
    }
    taken.wait();
    std::thread([&] {
        for (int i = 0; i < 5000; ++i) pool.deallocate(pool.allocate(100), 100);
    }).join();
    done.count_down();
    for (std::thread& thread : threads) thread.join();
    trace.look([](const TracePart&) {});
    end(trace);
    EXPECT_EQ(trace.threads_left_out(), 1U);
}

TEST(LiveTrace, SamplesStacksByBytes) {
    MemoryPool pool;
    LiveTrace trace = request_from_self(std::uint64_t{1} << 16);
    take_slow_path();
    for (int i = 0; i < 100; ++i) pool.deallocate(pool.allocate(std::size_t{1} << 20));
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    const auto frames = read.entries(TraceAction::frames);
    ASSERT_FALSE(frames.empty());
    const std::uint64_t module = frames[0].cycles >> 48;
    ASSERT_TRUE(read.modules.contains(module));
    EXPECT_TRUE(read.modules[module].starts_with('/')) << read.modules[module];
    std::size_t stacks = 0;
    for (const TraceEntry& one : frames) stacks += one.reserved;
    // Each has 16 times the interval, so all but one in nine million are sampled.
    EXPECT_GE(stacks, 99U);
}

TEST(LiveTrace, EntriesOutliveAKilledProcess) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        MemoryPool& pool = get_global_memory_pool();
        pool.deallocate(pool.allocate(std::size_t{1} << 20));
        char byte = 1;
        (void)!::write(ready[1], &byte, 1);
        for (;;) {
            void* const block = pool.allocate(std::size_t{1} << 20);
            pool.deallocate(block);
        }
    }
    char byte;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    LiveTrace trace = LiveTrace::ask(static_cast<std::uint64_t>(child));
    ReadTrace read;
    const auto look = [&] { return trace.look([&](const TracePart& part) { read.add(part); }); };
    testing::wait_until("the child has recorded calls", [&] { return look() != 0; });
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    look();
    EXPECT_EQ(look(), 0U);
    EXPECT_FALSE(trace.has_ended());
    const std::size_t allocations = read.entries(TraceAction::allocate).size();
    const std::size_t frees = read.entries(TraceAction::deallocate).size();
    EXPECT_GE(allocations + 1, frees);
    ::close(ready[0]);
    ::close(ready[1]);
}

TEST(LiveTrace, SecondRecorderIsRefused) {
    LiveTrace trace = request_from_self();
    try {
        LiveTrace::ask(own_number());
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_NE(std::string(error.what()).find("recorded already"), std::string::npos);
    }
    take_slow_path();
    trace.look([](const TracePart&) {});
    end(trace);
}

TEST(LiveTrace, CanBeRequestedRepeatedly) {
    MemoryPool pool;
    for (int round = 0; round < 3; ++round) {
        LiveTrace trace = request_from_self();
        void* const block = pool.allocate(100'000);
        pool.deallocate(block);
        ReadTrace read;
        trace.look([&](const TracePart& part) { read.add(part); });
        end(trace);
        EXPECT_EQ(read.entries(TraceAction::allocate).size(), 1U) << round;
    }
}

/// Returns the bytes of shared memory that this process has resident (proc(5)).
std::size_t shared_resident_bytes() {
    std::ifstream file("/proc/self/status");
    std::string word;
    while (file >> word && word != "RssShmem:") {
    }
    std::size_t kib = 0;
    file >> kib;
    return kib * 1024;
}

TEST(LiveTrace, EndedRecordingHoldsNoMemory) {
    const auto record_once = [] {
        LiveTrace trace = request_from_self();
        take_slow_path();
        trace.look([](const TracePart&) {});
        end(trace);
    };
    record_once();
    const std::size_t before = shared_resident_bytes();
    ASSERT_GT(before, 0U);  // the segment
    for (int round = 0; round < 8; ++round) record_once();
    EXPECT_LE(shared_resident_bytes(), before + trace::ring_bytes);
}

TEST(LiveTrace, AbandonedRecordingEndsAndCanBeRequestedAgain) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "a memory tool closes the inline paths";
    MemoryPool pool;
    {
        const LiveTrace killed = request_from_self();
        take_slow_path();
    }
    const auto fill = [&] {
        for (std::size_t i = 0; i < trace::ring_entries; ++i) pool.deallocate(pool.allocate(100));
    };
    fill();  // drops as many entries, so the ring is checked and found full
    testing::moved_seconds = 11;
    fill();
    testing::moved_seconds = 0;
    EXPECT_TRUE(testing::inline_path_is_open());
    LiveTrace trace = request_from_self();
    pool.deallocate(pool.allocate(100'000));
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 1U);
}

TEST(LiveTrace, AdjustedWallClockMovesNoMoment) {
    constexpr std::uint64_t minute_ns = 60'000'000'000;
    const std::uint64_t before = trace_moment().unix_ns;
    testing::moved_wall_seconds = 3600;
    const std::uint64_t after = trace_moment().unix_ns;
    testing::moved_wall_seconds = -3600;
    const std::uint64_t last = trace_moment().unix_ns;
    testing::moved_wall_seconds = 0;
    EXPECT_LT(after - before, minute_ns);
    EXPECT_LT(last - after, minute_ns);
}

TEST(LiveTrace, ClockThatGoesBackEndsNoRecording) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "a memory tool closes the inline paths";
    MemoryPool pool;
    LiveTrace trace = request_from_self();
    take_slow_path();
    const auto fill = [&] {
        for (std::size_t i = 0; i < trace::ring_entries; ++i) pool.deallocate(pool.allocate(100));
    };
    fill();  // drops as many entries, so the ring is checked and found full
    testing::moved_seconds = -11;
    fill();
    EXPECT_FALSE(testing::inline_path_is_open());
    testing::moved_seconds = 0;
    trace.look([](const TracePart&) {});
    end(trace);
}

TEST(LiveTrace, IdleProcessRecordsNothing) {
    LiveTrace trace = request_from_self();
    EXPECT_EQ(trace.look([](const TracePart&) { FAIL(); }), 0U);
    trace.stop();
    take_slow_path();
    EXPECT_EQ(trace.look([](const TracePart&) { FAIL(); }), 0U);
    EXPECT_FALSE(trace.has_begun());
}

TEST(LiveTrace, ChildOfAForkRecordsOnlyOnRequest) {
    LiveTrace trace = request_from_self();
    take_slow_path();
    EXPECT_TRUE(testing::holds_in_child([] {
        MemoryPool pool;
        for (int i = 0; i < 1000; ++i) pool.deallocate(pool.allocate(100), 100);
        LiveTrace own = LiveTrace::ask(own_number());
        void* const block = pool.allocate(100'000);
        pool.deallocate(block);
        ReadTrace read;
        own.look([&](const TracePart& part) { read.add(part); });
        return read.entries(TraceAction::allocate).size() == 1 &&
               read.processes.at(0).process == own_number();
    }));
    MemoryPool pool;
    pool.deallocate(pool.allocate(100'000));
    ReadTrace read;
    trace.look([&](const TracePart& part) { read.add(part); });
    end(trace);
    EXPECT_EQ(read.entries(TraceAction::allocate).back().bytes, 100'000U);
}

// The child gives back the scratches of threads that it does not have, without rings to record
// that.
TEST(LiveTrace, ChildOfAForkGivesBackScratchesWithoutRings) {
    LiveTrace trace = request_from_self();
    take_slow_path();
    Scratch::local().allocate(100);  // this thread has a ring
    std::latch taken(1);
    std::latch done(1);
    std::thread other([&] {
        Scratch::local().allocate(100);
        taken.count_down();
        done.wait();
    });
    taken.wait();
    EXPECT_EQ(testing::exit_code_of_child([] { return 0; }), 0);
    done.count_down();
    other.join();
    trace.look([](const TracePart&) {});
    end(trace);
}

TEST(LiveTrace, ChildOfAForkOpensTheInlinePaths) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "a memory tool closes the inline paths";
    LiveTrace trace = request_from_self();
    take_slow_path();
    EXPECT_FALSE(testing::inline_path_is_open());
    EXPECT_TRUE(testing::holds_in_child([] { return testing::inline_path_is_open(); }));
    trace.look([](const TracePart&) {});
    end(trace);
    EXPECT_TRUE(testing::inline_path_is_open());
}

TEST(LiveTrace, ReportsWhyItCannotAttach) {
    try {
        LiveTrace::ask(1'000'000'000);
        FAIL();
    } catch (const AttachError& error) {
        EXPECT_EQ(error.failure(), AttachFailure::no_process);
        EXPECT_NE(std::string(error.what()).find("1000000000"), std::string::npos);
    }
}

TEST(LiveTrace, IsBegunAndEndedByTheBackgroundTrimmerThatSleeps) {
    MemoryPool pool(PoolOptions{.retain = {.milliseconds = 1, .background = BackgroundTrim::on}});
    pool.deallocate(pool.allocate(std::size_t{1} << 20));
    testing::wait_until("the trimmer has returned the memory",
                        [&] { return pool.get_total_capacity() == 0; });
    LiveTrace trace = LiveTrace::ask(own_number());
    testing::wait_until("the trace has begun", [&] {
        trace.look([](const TracePart&) {});
        return trace.has_begun();
    });
    trace.stop();
    testing::wait_until("the trace has ended", [&] { return trace.has_ended(); });
}

}  // namespace
}  // namespace tensorpool
