// The segment of a process that uses pools: its descriptor, its file, forks.

#include <tensorpool/memory_pool.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "platform/platform.hpp"
#include "pool/fill.hpp"
#include "statistics/add_records.hpp"
#include "statistics/segment/segment.hpp"
#include "support/child_process.hpp"
#include "support/file_tree.hpp"
#include "support/run_program.hpp"
#include "support/segment_files.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using testing::FileTree;
using testing::holds_in_child;
using testing::OpenFile;
using testing::ProgramResult;
using testing::segment_files;
using testing::use;
using testing::Variables;

ProgramResult run(std::vector<std::string> arguments, const Variables& variables = {}) {
    return testing::run_program(SEGMENT_PROGRAM, std::move(arguments), variables);
}

/// Compares the metrics that change with each call.
bool same_values(const PoolStatistics& a, const PoolStatistics& b) {
    return a.allocations == b.allocations && a.deallocations == b.deallocations &&
           a.in_use_bytes == b.in_use_bytes && a.requested_bytes == b.requested_bytes &&
           a.capacity_bytes == b.capacity_bytes && a.record_bytes == b.record_bytes &&
           a.parked_bytes == b.parked_bytes && a.id == b.id;
}

/// Lets two processes wait for each other.
class Signal {
public:
    Signal() {
        if (pipe(ends_) != 0) throw std::runtime_error("no pipe");
    }
    ~Signal() {
        close(ends_[0]);
        close(ends_[1]);
    }
    Signal(const Signal&) = delete;
    Signal& operator=(const Signal&) = delete;
    bool give() { return write(ends_[1], "x", 1) == 1; }
    bool wait() {
        char byte;
        return read(ends_[0], &byte, 1) == 1;
    }

private:
    int ends_[2];
};

/// The threads that count for a pool, as readers in other processes see them.
std::vector<std::uint64_t> threads_of(std::uint64_t pool) {
    std::vector<std::uint64_t> threads;
    statistics::SegmentHeader* const header = statistics::segment().header();
    const auto* const counters = reinterpret_cast<const statistics::CountersRecord*>(
        reinterpret_cast<const std::byte*>(header) +
        statistics::offset_of<statistics::CountersRecord>);
    for (std::size_t i = 0; i < header->region<statistics::CountersRecord>().used; ++i) {
        if (counters[i].pool == pool && counters[i].thread != 0)
            threads.push_back(counters[i].thread);
    }
    return threads;
}

// Its descriptor --------------------------------------------------------------------------------

TEST(SharedSegment, IsMadeWithTheFirstPool) {
    EXPECT_EQ(run({"count"}).output, "0\n") << "a program that uses no pool has no segment";
    EXPECT_EQ(run({"count", "pool"}).output, "1\n");
}

TEST(SharedSegment, IsClosedByExec) {
    EXPECT_EQ(run({"exec"}).output, "0\n");
}

TEST(SharedSegment, ProgramThatClosesItsDescriptorContinues) {
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool pool;
        use(pool);
        const std::vector<OpenFile> files = segment_files();
        if (files.size() != 1) return false;
        close(files[0].number);
        // Another file with that descriptor must not be closed.
        if (dup2(STDIN_FILENO, files[0].number) != files[0].number) return false;
        use(pool);
        const bool child_goes_on = holds_in_child([&] {
            use(pool);
            return testing::inode_of(files[0].number) == testing::inode_of(STDIN_FILENO) &&
                   segment_files().size() == 1;
        });
        return child_goes_on &&
               testing::inode_of(files[0].number) == testing::inode_of(STDIN_FILENO);
    }));
}

TEST(SharedSegment, ProgramThatClosesAllDescriptorsContinues) {
    EXPECT_TRUE(holds_in_child([] {
        MemoryPool pool;
        use(pool);
        const auto before = pool.statistics();
        for (int file = 3; file < 1100; ++file) close(file);
        if (!same_values(pool.statistics(), before)) return false;
        use(pool);
        return holds_in_child([&] {
            use(pool);
            return segment_files().size() == 1;
        });
    }));
}

// Its variables ---------------------------------------------------------------------------------

TEST(SharedSegmentVariables, OffKeepsNoDescriptor) {
    const ProgramResult result = run({"count", "pool"}, {{"TENSORPOOL_STATISTICS", "off"}});
    EXPECT_EQ(result.output, "0\n");
    EXPECT_EQ(result.errors, "");
    for (const char* const on : {"on", ""}) {
        EXPECT_EQ(run({"count", "pool"}, {{"TENSORPOOL_STATISTICS", on}}).output, "1\n");
    }
}

TEST(SharedSegmentVariables, OffMakesNoFile) {
    const FileTree folder;
    const Variables variables = {{"TENSORPOOL_STATISTICS", "off"},
                                 {"TENSORPOOL_STATISTICS_DIR", folder.root()}};
    const ProgramResult result = run({"file"}, variables);
    EXPECT_EQ(result.output, "parent: none\nchild: none\n");
    EXPECT_EQ(result.exit_code, 0);
}

TEST(SharedSegmentVariables, InvalidValueIsReportedOnce) {
    const ProgramResult result = run({"count", "pool"}, {{"TENSORPOOL_STATISTICS", "maybe"}});
    EXPECT_EQ(result.output, "1\n");
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_STATISTICS is 'maybe'; expected on or off; used instead: "
              "on\n");
    EXPECT_EQ(run({"count"}, {{"TENSORPOOL_STATISTICS", "maybe"}}).errors, "")
        << "a program that uses no pool does not read the variable";
}

TEST(SharedSegmentVariables, FolderHasAFileForEachRunningProcess) {
    const FileTree folder;
    const ProgramResult result = run({"file"}, {{"TENSORPOOL_STATISTICS_DIR", folder.root()}});
    EXPECT_EQ(result.output, "parent: mode 600, 20971520 B\nchild: mode 600, 20971520 B\n");
    EXPECT_EQ(result.errors, "");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(std::filesystem::is_empty(folder.root())) << "removed at a normal exit";
}

TEST(SharedSegmentVariables, FileOfAnAbortedProgramStays) {
    const FileTree folder;
    const ProgramResult result = run({"abandon"}, {{"TENSORPOOL_STATISTICS_DIR", folder.root()}});
    EXPECT_EQ(result.exit_code, 0);
    const std::string number = result.output.substr(0, result.output.find('\n'));
    EXPECT_TRUE(std::filesystem::exists(folder.root() + "/" + number));
}

TEST(SharedSegmentVariables, UnusableFolderIsReportedOnce) {
    const FileTree folder;
    const ProgramResult result =
        run({"file"}, {{"TENSORPOOL_STATISTICS_DIR", folder.path("/missing")}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "parent: none\nchild: none\n");
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_STATISTICS_DIR is '" + folder.path("/missing") +
                  "', where no file of 20 MiB named after this process could be created; expected "
                  "a folder that it may write to; used instead: statistics that only processes of "
                  "this machine can read\n");
}

TEST(SharedSegmentVariables, RelativeFolderIsReported) {
    const ProgramResult result = run({"file"}, {{"TENSORPOOL_STATISTICS_DIR", "statistics"}});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.output, "parent: none\nchild: none\n");
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_STATISTICS_DIR is 'statistics'; expected an absolute path; "
              "used instead: statistics that only processes of this machine can read\n");
}

// The address sanitizer needs descriptors and attaches to the program to look for leaks, and the
// undefined-behavior sanitizer tests addresses through a pipe. Both fail under these limits.
#if !defined(__SANITIZE_ADDRESS__)
// The user who starts a set-user-ID program must not choose where that program makes files.
TEST(SharedSegmentVariables, SetUserIdProgramMakesNoFile) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root to give a program to another user";
    const FileTree folder;
    const std::string program = folder.path("/program");
    std::filesystem::copy_file(SEGMENT_PROGRAM, program);
    constexpr uid_t other_user = 65534;
    ASSERT_EQ(chown(program.c_str(), other_user, other_user), 0);
    ASSERT_EQ(chmod(program.c_str(), 04755), 0);
    ASSERT_EQ(chmod(folder.root().c_str(), 0777), 0);
    const ProgramResult result =
        testing::run_program(program, {"file"}, {{"TENSORPOOL_STATISTICS_DIR", folder.root()}});
    if (result.exit_code == -1) GTEST_SKIP() << "this file system ignores the set-user-ID bit";
    EXPECT_EQ(result.output, "parent: none\nchild: none\n");
    EXPECT_EQ(result.exit_code, 0);
}

TEST(SharedSegmentLimits, PoolWorksWithoutDescriptors) {
    EXPECT_EQ(run({"within", "NOFILE", "3"}).exit_code, 0);
    EXPECT_EQ(run({"within", "NOFILE", "0"}).exit_code, 0);
    EXPECT_EQ(run({"fork_within", "NOFILE", "0"}).exit_code, 0);
}
#endif

TEST(SharedSegmentVariables, FolderWithATooLongNameIsReported) {
    const ProgramResult result =
        run({"count", "pool"}, {{"TENSORPOOL_STATISTICS_DIR", std::string(480, 'd')}});
    EXPECT_EQ(result.output, "1\n");
    EXPECT_EQ(result.errors,
              "tensorpool: TENSORPOOL_STATISTICS_DIR has 480 characters; expected less than 480; "
              "used instead: statistics that only processes of this machine can read\n");
}

// Limits ----------------------------------------------------------------------------------------

TEST(SharedSegmentLimits, PoolWorksWithASmallFileSizeLimit) {
    EXPECT_EQ(run({"within", "FSIZE", "0"}).exit_code, 0);
    EXPECT_EQ(run({"within", "FSIZE", "16777215"}).exit_code, 0);
    EXPECT_EQ(run({"fork_within", "FSIZE", "0"}).exit_code, 0);
}

// Sanitizers need address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(SharedSegmentLimits, ChildWorksWithoutFreeAddressSpace) {
    for (const char* const more : {"0", "4000000", "17000000", "34000000"}) {
        const ProgramResult result = run({"fork_within", "AS", more});
        EXPECT_EQ(result.exit_code, 0) << more << ": " << result.errors;
    }
}
#endif

// Forks -----------------------------------------------------------------------------------------

TEST(SharedSegmentFork, ChildHasItsParentsStatisticsInItsOwnSegment) {
    MemoryPool pool({.name = "inherited"});
    void* const block = pool.allocate(1000);
    use(pool);
    const PoolStatistics before = pool.statistics();
    const std::vector<OpenFile> files = segment_files();
    ASSERT_EQ(files.size(), 1U);
    EXPECT_TRUE(holds_in_child([&] {
        const std::vector<OpenFile> own = segment_files();
        if (own.size() != 1 || own[0].inode == files[0].inode) return false;
        if (!same_values(pool.statistics(), before)) return false;
        const statistics::SegmentHeader& header = *statistics::segment().header();
        if (header.process != static_cast<std::uint64_t>(getpid())) return false;
        if (header.epoch % 2 != 0) return false;
        use(pool);
        pool.deallocate(block, 1000);
        // The child counts in a file of its own.
        std::uint64_t process = 0;
        const off_t at = offsetof(statistics::SegmentHeader, process);
        return pread(own[0].number, &process, sizeof process, at) == sizeof process &&
               process == header.process && pool.get_total_allocated() == 0;
    }));
    EXPECT_TRUE(same_values(pool.statistics(), before)) << "the child has its own counters";
    EXPECT_EQ(statistics::segment().header()->process, static_cast<std::uint64_t>(getpid()));
    EXPECT_EQ(segment_files().size(), 1U);
    EXPECT_EQ(segment_files()[0].inode, files[0].inode);
    pool.deallocate(block, 1000);
}

TEST(SharedSegmentFork, ChildDoesNotSeeLaterCountsOfItsParent) {
    MemoryPool pool;
    use(pool);
    const PoolStatistics before = pool.statistics();
    Signal counted;
    const pid_t child = fork();
    if (child == 0) _exit(counted.wait() && same_values(pool.statistics(), before) ? 0 : 1);
    use(pool);
    { MemoryPool another; }
    EXPECT_TRUE(counted.give());
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(SharedSegmentFork, GrandchildHasItsOwnSegment) {
    MemoryPool pool;
    void* const block = pool.allocate(100);
    EXPECT_TRUE(holds_in_child([&] {
        void* const second = pool.allocate(100);
        const PoolStatistics before = pool.statistics();
        const std::uint64_t inode = segment_files().at(0).inode;
        const bool holds = holds_in_child([&] {
            if (!same_values(pool.statistics(), before)) return false;
            pool.deallocate(block, 100);
            pool.deallocate(second, 100);
            return pool.get_total_allocated() == 0 && segment_files().size() == 1 &&
                   segment_files()[0].inode != inode;
        });
        return holds && same_values(pool.statistics(), before);
    }));
    pool.deallocate(block, 100);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(SharedSegmentFork, ChildMakesAndDestroysPools) {
    MemoryPool pool;
    use(pool);
    const std::uint64_t used =
        statistics::segment().header()->region<statistics::PoolRecord>().used;
    EXPECT_TRUE(holds_in_child([&] {
        std::vector<MemoryPool> pools(5);
        for (MemoryPool& one : pools) use(one);
        return statistics::segment().header()->region<statistics::PoolRecord>().used >= used;
    }));
    EXPECT_EQ(statistics::segment().header()->region<statistics::PoolRecord>().used, used);
    MemoryPool after;
    use(after);
}

TEST(SharedSegmentFork, ForkingThreadHasItsNewNumberInTheChild) {
    MemoryPool pool;
    use(pool);
    const std::uint64_t id = pool.statistics().id;
    EXPECT_EQ(threads_of(id), std::vector{platform::current_thread_id()});
    EXPECT_TRUE(holds_in_child(
        [&] { return threads_of(id) == std::vector{platform::current_thread_id()}; }));
}

// Not under sanitizers: their malloc does not survive a fork during another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// One thread allocates blocks and another frees them, until this object is destroyed.
class Exchange {
public:
    explicit Exchange(MemoryPool& pool) : pool_(pool) {
        allocates_ = std::thread([this] {
            while (!over_) put(pool_.allocate(64));
        });
        testing::wait_until("1,000 blocks are allocated", [this] { return exchanged_ >= 1000; });
        put_counters_between();
        frees_ = std::thread([this] {
            while (!over_) put(nullptr);
        });
        testing::wait_until("1,000 blocks are exchanged", [this] { return exchanged_ >= 2000; });
    }
    ~Exchange() {
        over_ = true;
        allocates_.join();
        frees_.join();
        put(nullptr);
        for (statistics::CountersRecord* const counters : between_them_) {
            statistics::segment().remove(*counters);
        }
    }
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

private:
    void put(void* block) {
        pool_.deallocate(between_.exchange(block), 64);
        ++exchanged_;
    }
    // Adds records between the counters of the two threads, so that many blocks are exchanged
    // between the times at which a reader reads the two.
    void put_counters_between() {
        const statistics::PoolRecord unused{};
        for (statistics::CountersRecord*& counters : between_them_) {
            counters = add_slot(statistics::segment(), unused);
        }
    }

    MemoryPool& pool_;
    std::array<statistics::CountersRecord*, 2000> between_them_;
    std::atomic<void*> between_ = nullptr;
    std::atomic<bool> over_ = false;
    std::atomic<unsigned> exchanged_ = 0;
    std::thread allocates_;
    std::thread frees_;
};

TEST(SharedSegmentFork, ChildForkedDuringCallsNeverSeesMoreFreesThanAllocations) {
    MemoryPool pool({.name = "exchange"});
    std::vector<void*> held;
    for (int i = 0; i < 50; ++i) held.push_back(pool.allocate(64));
    {
        const Exchange exchange(pool);
        for (int round = 0; round < 60; ++round) {
            ASSERT_TRUE(holds_in_child([&] {
                const PoolStatistics values = pool.statistics();
                return values.deallocations <= values.allocations &&
                       values.in_use_bytes >= 50 * values.buckets[0].block_bytes;
            })) << round;
        }
    }
    for (void* const block : held) pool.deallocate(block, 64);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(SharedSegmentFork, ChildForkedDuringCallsFreesInheritedBlocks) {
    MemoryPool pool({.name = "exchange"});
    std::vector<void*> held;
    for (int i = 0; i < 500; ++i) held.push_back(pool.allocate(64));
    {
        const Exchange exchange(pool);
        for (int round = 0; round < 20; ++round) {
            ASSERT_TRUE(holds_in_child([&] {
                const std::size_t before = pool.get_total_allocated();
                for (void* const block : held) pool.deallocate(block, 64);
                const std::size_t after = pool.get_total_allocated();
                use(pool);
                return before - after == 500 * pool.statistics().buckets[0].block_bytes &&
                       pool.get_total_allocated() == after;
            })) << round;
        }
    }
    for (void* const block : held) pool.deallocate(block, 64);
}
#endif

}  // namespace
}  // namespace tensorpool
