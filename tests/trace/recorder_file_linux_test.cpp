// Recordings into the file that TENSORPOOL_TRACE names. Each runs in a child, whose first slow path
// reads the environment again.

#include "platform/tools/memory_tools.hpp"
#include "trace/recorder.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <tensorpool/tensorpool.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "device/owned_device_record.hpp"
#include "events/recorder_hooks.hpp"
#include "support/child_process.hpp"
#include "trace/held_writes.hpp"
#include "trace/inline_path.hpp"
#include "trace/read_trace.hpp"

extern "C" {
ssize_t __real_writev(int file, const iovec* parts, int count);
ssize_t __wrap_writev(int file, const iovec* parts, int count) {
    tensorpool::testing::HeldWrites::pass();
    return __real_writev(file, parts, count);
}
}

namespace tensorpool::trace {
namespace {

using testing::exit_code_of_child;
using testing::HeldWrites;
using testing::read_trace_file;
using testing::ReadTrace;

class RecorderFile : public ::testing::Test {
protected:
    RecorderFile() {
        std::string name = std::filesystem::temp_directory_path() / "trace-XXXXXX";
        folder_ = ::mkdtemp(name.data());
    }
    ~RecorderFile() override { std::filesystem::remove_all(folder_); }

    std::string path(const std::string& name = "a.tpt") const { return folder_ / name; }

    /// Runs `work` in a child that records into the file, and reads the file.
    template <class Work>
    ReadTrace record(Work&& work) {
        const int code = exit_code_of_child([&] {
            ::setenv("TENSORPOOL_TRACE", path().c_str(), 1);
            work();
            recorder().finish();  // as at exit, which a test's child does not reach
            return 0;
        });
        EXPECT_EQ(code, 0);
        return read_trace_file(path());
    }

private:
    std::filesystem::path folder_;
};

TEST_F(RecorderFile, ContainsEveryCallFromTheFirst) {
    const ReadTrace read = record([] {
        MemoryPool pool;
        pool.deallocate(pool.allocate(100), 100);
    });
    ASSERT_EQ(read.processes.size(), 1U);
    EXPECT_EQ(read.processes[0].from_start, 1U);
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 1U);
    EXPECT_EQ(read.entries(TraceAction::deallocate).size(), 1U);
    EXPECT_EQ(read.entries(TraceAction::gone).size(), 1U);
    EXPECT_TRUE(read.ended);
}

TEST_F(RecorderFile, RecordsGrowthBeforeItsBlock) {
    const ReadTrace read = record([] {
        MemoryPool pool;
        pool.deallocate(pool.allocate(std::size_t{8} << 20));
    });
    const auto blocks = read.entries(TraceAction::allocate);
    ASSERT_EQ(blocks.size(), 1U);
    const auto held = read.entries(TraceAction::capacity);
    const auto grown = std::ranges::find_if(held, [&](const TraceEntry& one) {
        return one.source == blocks[0].source && one.bytes >= blocks[0].bytes;
    });
    ASSERT_NE(grown, held.end());
    EXPECT_LE(grown->cycles, blocks[0].cycles);
}

// The first allocation takes no slow path.
TEST_F(RecorderFile, ContainsTheFirstAllocationOfAnArena) {
    const ReadTrace read = record([] {
        Arena arena;
        arena.allocate(1000);
        arena.allocate(2000);
    });
    const auto allocations = read.entries(TraceAction::arena_allocate);
    ASSERT_EQ(allocations.size(), 2U);
    EXPECT_EQ(allocations[0].bytes, 1000U);
    EXPECT_LT(allocations[0].address, allocations[1].address);
}

TEST_F(RecorderFile, RecordsNameCapacityAndBlocksOfADeviceAllocator) {
    const ReadTrace read = record([] {
        device::OwnedDeviceRecord record("weights", DeviceStatistics::Kind::caching, {});
        int block = 0;
        int stream = 0;
        record.totals().count_growth(4096);
        record.note_capacity();
        events::record_device_block(record.id(), &stream, &block, 100);
        events::record_device_block(record.id(), nullptr, &block, 200);
    });
    // Of this allocator only: pools of earlier tests record their capacities too.
    auto held = read.entries(TraceAction::capacity);
    std::erase_if(
        held, [&](const TraceEntry& entry) { return entry.source != read.sources.at("weights"); });
    ASSERT_EQ(held.size(), 1U);
    EXPECT_EQ(held[0].bytes, 4096U);
    EXPECT_EQ(read.entries(TraceAction::gone).size(), 1U);
    const auto streams = read.entries(TraceAction::stream);
    ASSERT_EQ(streams.size(), 1U) << "the default stream is not recorded";
    const auto blocks = read.entries(TraceAction::allocate);
    ASSERT_EQ(blocks.size(), 2U);
    EXPECT_EQ(blocks[0].bytes, 100U);
    EXPECT_EQ(blocks[0].source, held[0].source);
    EXPECT_EQ(read.sources.at("weights"), held[0].source);
    EXPECT_EQ(read.kinds.at("weights"), TraceSource::device);
}

// The write of the file's first bytes is held during the test.
TEST_F(RecorderFile, ContainsCallsOfThreadsThatWaitForTheFirst) {
    const ReadTrace read = record([] {
        MemoryPool pool;
        HeldWrites writes;
        std::thread first([&] {
            writes.hold_mine();
            pool.deallocate(pool.allocate(100), 100);
        });
        writes.wait_until_held();
        std::thread second([&] { pool.deallocate(pool.allocate(200), 200); });
        for (int i = 0; i < 1000; ++i) std::this_thread::yield();
        writes.let_go();
        first.join();
        second.join();
    });
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 2U);
}

TEST_F(RecorderFile, FullRingIsWrittenOutWithoutLoss) {
    constexpr std::size_t pairs = 3 * ring_entries;
    const ReadTrace read = record([] {
        MemoryPool pool;
        const auto work = [&] {
            for (std::size_t i = 0; i < pairs; ++i) pool.deallocate(pool.allocate(100), 100);
        };
        std::thread other(work);
        work();
        other.join();
    });
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 2 * pairs);
    EXPECT_EQ(read.entries(TraceAction::deallocate).size(), 2 * pairs);
    for (const auto& [ring, count] : read.dropped) EXPECT_EQ(count, 0U) << ring;
}

TEST_F(RecorderFile, OtherProcessesWriteTheirOwnFiles) {
    const ReadTrace read = record([] {
        MemoryPool pool;
        pool.deallocate(pool.allocate(100'000));
        const int code = exit_code_of_child([] {
            MemoryPool own;
            own.deallocate(own.allocate(200'000));
            recorder().finish();
            return 0;
        });
        if (code != 0) std::_Exit(1);
    });
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 1U);
    std::vector<std::string> files;
    for (const auto& one :
         std::filesystem::directory_iterator(std::filesystem::path(path()).parent_path())) {
        files.push_back(one.path());
    }
    ASSERT_EQ(files.size(), 2U);
    const std::string& other = files[0] == path() ? files[1] : files[0];
    EXPECT_TRUE(other.starts_with(path() + ".")) << other;
    EXPECT_EQ(read_trace_file(other).entries(TraceAction::allocate).at(0).bytes, 200'000U);
}

/// Starts a thread that has the first ring of the process and is held while it writes the ring out.
std::thread hold_while_writing(HeldWrites& writes, MemoryPool& pool) {
    std::thread thread([&] {
        void* const first = pool.allocate(100);
        writes.hold_mine();
        for (std::size_t i = 0; i < ring_entries; ++i) pool.deallocate(pool.allocate(100), 100);
        pool.deallocate(first, 100);
    });
    writes.wait_until_held();
    return thread;
}

TEST_F(RecorderFile, ExitWritesOtherRingsDespiteABusyOne) {
    const ReadTrace read = record([] {
        MemoryPool pool;
        HeldWrites writes;
        std::thread other = hold_while_writing(writes, pool);
        pool.deallocate(pool.allocate(100'000));
        recorder().finish();
        writes.let_go();
        other.join();
    });
    const auto allocations = read.entries(TraceAction::allocate);
    EXPECT_TRUE(std::any_of(allocations.begin(), allocations.end(),
                            [](const TraceEntry& one) { return one.bytes == 100'000; }));
    EXPECT_TRUE(read.ended);
}

TEST_F(RecorderFile, ForkDuringAWriteLeavesTheChildItsRings) {
    std::string child;
    record([&] {
        MemoryPool pool;
        HeldWrites writes;
        std::thread other = hold_while_writing(writes, pool);
        const pid_t forked = ::fork();
        if (forked == 0) {
            MemoryPool own;
            own.deallocate(own.allocate(200'000));
            recorder().finish();
            std::_Exit(0);
        }
        ::waitpid(forked, nullptr, 0);
        writes.let_go();
        other.join();
    });
    for (const auto& one :
         std::filesystem::directory_iterator(std::filesystem::path(path()).parent_path())) {
        if (one.path() != path()) child = one.path();
    }
    const ReadTrace read = read_trace_file(child);
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 1U);
    EXPECT_TRUE(read.ended);
}

void* use_pool_when_cancelled(void* done) {
    MemoryPool pool;
    pool.deallocate(pool.allocate(100), 100);
    ::pthread_cancel(::pthread_self());
    for (std::size_t i = 0; i < 2 * ring_entries; ++i) pool.deallocate(pool.allocate(100), 100);
    *static_cast<bool*>(done) = true;
    return nullptr;
}

TEST_F(RecorderFile, RecordingIsNotACancellationPoint) {
    const ReadTrace read = record([] {
        bool done = false;
        pthread_t thread{};
        ::pthread_create(&thread, nullptr, use_pool_when_cancelled, &done);
        ::pthread_join(thread, nullptr);
        if (!done) std::_Exit(1);
    });
    EXPECT_EQ(read.entries(TraceAction::allocate).size(), 2 * ring_entries + 1);
}

TEST_F(RecorderFile, OldContentIsReplaced) {
    const auto once = [] {
        get_global_memory_pool().deallocate(get_global_memory_pool().allocate(100'000));
    };
    record(once);
    EXPECT_EQ(record(once).entries(TraceAction::allocate).size(), 1U);
}

TEST_F(RecorderFile, ProgramContinuesIfTheFileCannotBeWritten) {
    EXPECT_EQ(exit_code_of_child([] {
                  ::setenv("TENSORPOOL_TRACE", "/nonexistent/folder/a.tpt", 1);
                  MemoryPool pool;
                  void* const block = pool.allocate(100);
                  pool.deallocate(block, 100);
                  return block != nullptr && pool.get_allocation_count() == 1 ? 0 : 1;
              }),
              0);
}

// The first chunk of calls would begin at the size limit, where a write raises a signal.
TEST_F(RecorderFile, FileSizeLimitEndsOnlyTheRecording) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "a memory tool closes the inline paths";
    constexpr rlim_t limit = sizeof(TraceHeader) + sizeof(TraceChunkHeader) + sizeof(TraceProcess);
    EXPECT_EQ(exit_code_of_child([&] {
                  const rlimit wanted{limit, limit};
                  if (::setrlimit(RLIMIT_FSIZE, &wanted) != 0) return 2;
                  ::setenv("TENSORPOOL_TRACE", path().c_str(), 1);
                  MemoryPool pool;
                  for (std::size_t i = 0; i < 2 * ring_entries; ++i) {
                      pool.deallocate(pool.allocate(100), 100);
                  }
                  if (!testing::inline_path_is_open()) return 3;
                  sigset_t pending;
                  sigpending(&pending);
                  return sigismember(&pending, SIGXFSZ);
              }),
              0);
    const ReadTrace read = read_trace_file(path());
    EXPECT_EQ(read.processes.size(), 1U);
    EXPECT_TRUE(read.rings.empty());
}

}  // namespace
}  // namespace tensorpool::trace
