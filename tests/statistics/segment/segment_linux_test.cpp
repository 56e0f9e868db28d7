// Tests of the segment that need its file.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <cstddef>

#include "platform/platform.hpp"
#include "platform/tools/memory_tools.hpp"
#include "statistics/add_records.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/segment.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool::statistics {
namespace {

using testing::holds_in_child;

constexpr std::size_t kib = 1024;

/// A shared segment whose touched pages can be counted.
struct SharedSegment : Segment {
    ~SharedSegment() {
        platform::close_shared_memory(memory().used());
        if (header() != nullptr) platform::unmap(memory().used().address, memory().bytes());
    }
    std::size_t touched() {
        struct stat status {};
        fstat(memory().used().file, &status);
        return static_cast<std::size_t>(status.st_blocks) * 512;
    }
};

TEST(SegmentPages, StartTouchesAtMostThirtyTwoKib) {
    SharedSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    ASSERT_GE(segment.memory().used().file, 0);
    CountersRecord* const counters = add_slot(segment, *pool);
    for (detail::BucketCounters& bucket : counters->counters.buckets) bucket.allocations = 1;
    counters->counters.large.allocations = 1;
    pool->totals.held_bytes = 1;
    pool->left_out.large.parked_bytes = 1;
    segment.timeline()->ticket = 1;
    EXPECT_LE(segment.touched(), 32 * kib);
}

TEST(SegmentPages, ThreadTouchesAboutOnePage) {
    SharedSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    add_slot(segment, *pool);
    const std::size_t before = segment.touched();
    for (int thread = 0; thread < 1000; ++thread) {
        CountersRecord* const counters = add_slot(segment, *pool);
        for (detail::BucketCounters& bucket : counters->counters.buckets) bucket.allocations = 1;
    }
    EXPECT_LE(segment.touched() - before, 1000 * 4 * kib);
}

TEST(SegmentPages, RepeatedPoolsAndThreadsTouchNoMorePages) {
    SharedSegment segment;
    const auto round = [&] {
        PoolRecord* const pool = add_pool(segment, "pool", 0);
        CountersRecord* const counters = add_slot(segment, *pool);
        segment.remove(*counters);
        segment.remove(*pool);
    };
    round();
    const std::size_t before = segment.touched();
    for (int i = 0; i < 10'000; ++i) round();
    EXPECT_EQ(segment.touched(), before);
}

// Forks: the tests call the handlers of the process's own segment by hand ------------------------

TEST(SegmentFork, ChildHasOwnCopyAtSameAddress) {
    SharedSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 5);
    CountersRecord* const counters = add_slot(segment, *pool);
    ScopeRecord* const scope = segment.find_or_add<statistics::ScopeRecord>("scope");
    counters->counters.buckets[3].allocations = 33;
    scope->calls = 44;
    pool->totals.held_bytes = 55;
    segment.header()->failed_checks[1] = 66;
    const std::uint64_t inode = segment.memory().used().inode;
    const std::uint64_t id = pool->id;
    segment.before_fork();
    const pid_t child = fork();
    if (child == 0) {
        segment.after_fork_in_child();
        const bool copied = pool->id == id && pool->limit_bytes == 5 &&
                            counters->counters.buckets[3].allocations == 33 &&
                            counters->pool == id && scope->calls == 44 &&
                            pool->totals.held_bytes == 55 &&
                            segment.header()->failed_checks[1] == 66;
        const bool own = segment.memory().used().inode != inode &&
                         segment.memory().used().address == segment.header() &&
                         segment.header()->process == static_cast<std::uint64_t>(getpid());
        counters->counters.buckets[3].allocations = 99;
        segment.remove(*counters);
        PoolRecord* const next = add_pool(segment, "next", 0);
        _exit(copied && own && next == pool + 1 && next->id > id ? 0 : 1);
    }
    segment.after_fork_in_parent();
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(counters->counters.buckets[3].allocations, 33U);
    EXPECT_EQ(counters->pool, id);
    EXPECT_EQ(segment.header()->region<PoolRecord>().used, 2U);
    EXPECT_EQ(segment.memory().used().inode, inode);
}

TEST(SegmentFork, ChildHasCountersFromBeforeFork) {
    SharedSegment segment;
    PoolRecord* const pool = add_pool(segment, "pool", 0);
    pool->totals.growths = 1;
    segment.before_fork();
    pool->totals.growths = 2;  // as another thread of the parent may count
    EXPECT_TRUE(holds_in_child([&] {
        segment.after_fork_in_child();
        return pool->totals.growths == 1;
    }));
    segment.after_fork_in_parent();
    EXPECT_EQ(pool->totals.growths, 2U);
}

TEST(SegmentFork, UnderALimitOfAddressesAFifthOfTheSegmentIsMappedAndCopied) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "a memory tool takes addresses of its own";
    EXPECT_TRUE(holds_in_child([] {
        const std::size_t before = testing::memory_metrics().address_space;
        const std::size_t bytes = before + 100 * 1024 * kib;
        const rlimit limit{bytes, bytes};
        if (setrlimit(RLIMIT_AS, &limit) != 0) return false;
        static SharedSegment segment;
        PoolRecord* const pool = add_pool(segment, "pool", 0);
        if (pool == nullptr || add_slot(segment, *pool) == nullptr) return false;
        if (testing::memory_metrics().address_space - before > 5 * 1024 * kib) return false;
        const bool has_scope =
            segment.find_or_add<statistics::ScopeRecord>("scope") != nullptr;  // no room
        segment.before_fork();
        const bool held = holds_in_child([&] {
            segment.after_fork_in_child();
            return segment.memory().used().file >= 0 && pool->id != 0 &&
                   add_pool(segment, "child's", 0) != nullptr;
        });
        segment.after_fork_in_parent();
        return held && !has_scope;
    }));
}

TEST(SegmentFork, ForkWithoutSegmentCreatesNone) {
    SharedSegment segment;
    segment.before_fork();
    EXPECT_TRUE(holds_in_child([&] {
        segment.after_fork_in_child();
        return segment.header() == nullptr && add_pool(segment, "child's", 0) != nullptr;
    }));
    segment.after_fork_in_parent();
    EXPECT_EQ(segment.header(), nullptr);
    EXPECT_NE(add_pool(segment, "parent's", 0), nullptr);
}

TEST(SegmentFork, RepeatedForksLeakNothing) {
    SharedSegment segment;
    add_pool(segment, "pool", 0);
    const auto fork_once = [&] {
        segment.before_fork();
        const bool held = holds_in_child([&] {
            segment.after_fork_in_child();
            return true;
        });
        segment.after_fork_in_parent();
        return held;
    };
    ASSERT_TRUE(fork_once());
    const std::size_t descriptors = testing::descriptor_count();
    const std::size_t bytes = testing::memory_metrics().address_space;
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(fork_once());
    EXPECT_EQ(testing::descriptor_count(), descriptors);
    EXPECT_LT(testing::memory_metrics().address_space, bytes + segment_bytes);
}

}  // namespace
}  // namespace tensorpool::statistics
