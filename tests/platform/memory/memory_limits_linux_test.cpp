#include "platform/memory/memory_limits_linux.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t machine_total = 16384 * mib;
constexpr std::size_t machine_available = 8192 * mib;

/// A machine of 16 GiB with 8 GiB available, whose system files are written by the test.
class MemoryLimitsTest : public ::testing::Test {
protected:
    MemoryLimitsTest() {
        write("/proc/meminfo",
              "MemTotal:       16777216 kB\nMemFree:          123456 kB\n"
              "MemAvailable:    8388608 kB\n");
    }

    void write(const std::string& path, const std::string& text) { files_.write(path, text); }

    void write_limit_2(const std::string& group, std::size_t limit, std::size_t usage,
                       std::size_t inactive_file = 0) {
        write(group + "/memory.max", std::to_string(limit) + "\n");
        write(group + "/memory.current", std::to_string(usage) + "\n");
        write(group + "/memory.stat", "anon 1\nfile " + std::to_string(inactive_file) +
                                          "\ninactive_file " + std::to_string(inactive_file) +
                                          "\n");
    }

    void write_limit_1(const std::string& group, std::size_t limit, std::size_t usage,
                       std::size_t inactive_file = 0) {
        write(group + "/memory.limit_in_bytes", std::to_string(limit) + "\n");
        write(group + "/memory.usage_in_bytes", std::to_string(usage) + "\n");
        write(group + "/memory.stat",
              "inactive_file 1\ntotal_inactive_file " + std::to_string(inactive_file) + "\n");
    }

    /// Mounts version 2 at /sys/fs/cgroup with the process in `group`.
    void mount_2(const std::string& group, const std::string& mount_root = "/") {
        write("/proc/self/cgroup", "0::" + group + "\n");
        write("/proc/self/mountinfo", "25 1 0:22 / /proc rw - proc proc rw\n31 23 0:27 " +
                                          mount_root +
                                          " /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 "
                                          "rw,nsdelegate\n");
    }

    /// Mounts version 1 as Docker and systemd do, with the process in `group` for memory.
    void mount_1(const std::string& group, const std::string& mount_root = "/") {
        write("/proc/self/cgroup",
              "5:cpu,cpuacct:/other\n4:memory:" + group + "\n1:name=systemd:/x\n");
        write("/proc/self/mountinfo",
              "33 31 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
              "35 31 0:32 " +
                  mount_root + " /sys/fs/cgroup/memory rw master:13 - cgroup cgroup rw,memory\n");
    }

    MemoryLimits limits() const { return read_memory_limits(files_.root().c_str()); }

    testing::FileTree files_;
};

// The machine ------------------------------------------------------------------------------------

TEST_F(MemoryLimitsTest, MachineLimitsApplyWithoutGroups) {
    EXPECT_EQ(limits().total, machine_total);
    EXPECT_EQ(limits().available, machine_available);
}

TEST(MemoryLimits, UnreadableFilesDoNotLimit) {
    const MemoryLimits limits = read_memory_limits("/nonexistent");
    EXPECT_EQ(limits.total, no_limit);
    EXPECT_EQ(limits.available, no_limit);
}

TEST_F(MemoryLimitsTest, GarbageDoesNotLimit) {
    write("/proc/meminfo", "MemTotal: lots\nMemAvailable:\n\n:::");
    write("/proc/self/cgroup", "garbage\n0:\n0::relative\n::\n");
    write("/proc/self/mountinfo", "garbage\n\n1 2 3\n - cgroup2\n1 2 3 / /sys - \n");
    EXPECT_EQ(limits().total, no_limit);
    EXPECT_EQ(limits().available, no_limit);
}

TEST_F(MemoryLimitsTest, OverflowingMachineValuesDoNotLimit) {
    write("/proc/meminfo",
          "MemTotal: 18014398509481985 kB\nMemAvailable: 99999999999999999999 kB\n");
    EXPECT_EQ(limits().total, no_limit);
    EXPECT_EQ(limits().available, no_limit);
}

TEST_F(MemoryLimitsTest, FreeSwapCountsAsCommittableWithinGroupLimits) {
    EXPECT_EQ(limits().committable, machine_available);
    write(
        "/proc/meminfo",
        "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nSwapTotal: 9 kB\nSwapFree: 1048576 kB\n");
    EXPECT_EQ(limits().available, machine_available);
    EXPECT_EQ(limits().committable, machine_available + 1024 * mib);
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 8500 * mib, 0);
    EXPECT_EQ(limits().available, machine_available);
    EXPECT_EQ(limits().committable, 8500 * mib);
}

// Offered memory is on the kernel's list of inactive pages of files, even after it was written
// again.
TEST_F(MemoryLimitsTest, OfferedMemoryOfTheMachineIsNotAvailable) {
    write("/proc/meminfo",
          "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nBuffers: 1024 kB\nCached: 102400 kB\n"
          "SwapCached: 0 kB\nActive(anon): 5 kB\nActive(file): 51200 kB\n"
          "Inactive(file): 1100800 kB\nSwapFree: 0 kB\n");
    EXPECT_EQ(limits().available, machine_available - 1024 * mib);
    write("/proc/meminfo",
          "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nBuffers: 1024 kB\nCached: 4296704 kB\n"
          "SwapCached: 0 kB\nActive(file): 51200 kB\nInactive(file): 1100800 kB\n"
          "SwapFree: 0 kB\nShmem: 4194304 kB\n");
    EXPECT_EQ(limits().available, machine_available - 1024 * mib) << "tmpfs is not on these lists";
}

TEST_F(MemoryLimitsTest, OfferedMemoryOfAGroupIsNotAvailable) {
    const std::string file = std::to_string(100 * mib);
    const std::string shared = std::to_string(30 * mib);
    const std::string active = std::to_string(50 * mib);
    const std::string inactive = std::to_string(170 * mib);
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 500 * mib, 400 * mib);
    write("/sys/fs/cgroup/app/memory.stat", "file " + file + "\nshmem " + shared +
                                                "\ninactive_file " + inactive + "\nactive_file " +
                                                active + "\n");
    EXPECT_EQ(limits().available, 120 * mib);
    mount_1("/app");
    write_limit_1("/sys/fs/cgroup/memory/app", 500 * mib, 400 * mib);
    write("/sys/fs/cgroup/memory/app/memory.stat",
          "cache 1\nshmem 1\ninactive_file 1\nactive_file 1\ntotal_cache " + file +
              "\ntotal_shmem " + shared + "\ntotal_inactive_file " + inactive +
              "\ntotal_active_file " + active + "\n");
    EXPECT_EQ(limits().available, 120 * mib);
}

// Version 2 --------------------------------------------------------------------------------------

TEST_F(MemoryLimitsTest, LimitOfOwnGroupApplies) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1000 * mib, 300 * mib);
    EXPECT_EQ(limits().total, 1000 * mib);
    EXPECT_EQ(limits().available, 700 * mib);
}

TEST_F(MemoryLimitsTest, DroppableCacheDoesNotCountAsUsed) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1000 * mib, 300 * mib, 200 * mib);
    EXPECT_EQ(limits().available, 900 * mib);
}

TEST_F(MemoryLimitsTest, MoreCacheThanUsageLeavesTheWholeLimit) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1000 * mib, 300 * mib, 301 * mib);
    EXPECT_EQ(limits().available, 1000 * mib);
}

TEST_F(MemoryLimitsTest, UsageAboveTheLimitLeavesNothing) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1000 * mib, 1001 * mib);
    EXPECT_EQ(limits().total, 1000 * mib);
    EXPECT_EQ(limits().available, 0U);
}

TEST_F(MemoryLimitsTest, LowerSoftLimitApplies) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1000 * mib, 300 * mib);
    write("/sys/fs/cgroup/app/memory.high", std::to_string(800 * mib) + "\n");
    EXPECT_EQ(limits().total, 800 * mib);
    EXPECT_EQ(limits().available, 500 * mib);
}

TEST_F(MemoryLimitsTest, SoftLimitAppliesWithoutHardLimit) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1000 * mib, 300 * mib);
    write("/sys/fs/cgroup/app/memory.max", "max\n");
    write("/sys/fs/cgroup/app/memory.high", std::to_string(800 * mib) + "\n");
    EXPECT_EQ(limits().available, 500 * mib);
}

TEST_F(MemoryLimitsTest, MaxMeansNoLimit) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 1, 300 * mib);
    write("/sys/fs/cgroup/app/memory.max", "max\n");
    write("/sys/fs/cgroup/app/memory.high", "max\n");
    EXPECT_EQ(limits().total, machine_total);
    EXPECT_EQ(limits().available, machine_available);
}

TEST_F(MemoryLimitsTest, LimitAboveMachineMemoryHasNoEffect) {
    mount_2("/app");
    write_limit_2("/sys/fs/cgroup/app", 2 * machine_total, 1 * mib);
    EXPECT_EQ(limits().total, machine_total);
    EXPECT_EQ(limits().available, machine_available);
}

TEST_F(MemoryLimitsTest, LowestLimitOfAncestorsApplies) {
    mount_2("/a/b/c");
    write_limit_2("/sys/fs/cgroup/a/b/c", 3000 * mib, 100 * mib);
    write_limit_2("/sys/fs/cgroup/a/b", 1000 * mib, 200 * mib);
    write_limit_2("/sys/fs/cgroup/a", 2000 * mib, 300 * mib);
    EXPECT_EQ(limits().total, 1000 * mib);
    EXPECT_EQ(limits().available, 800 * mib);
}

TEST_F(MemoryLimitsTest, UsageOfOtherGroupsUnderAncestorCounts) {
    mount_2("/a/b");
    write_limit_2("/sys/fs/cgroup/a/b", 1000 * mib, 100 * mib);
    write_limit_2("/sys/fs/cgroup/a", 2000 * mib, 1950 * mib);
    EXPECT_EQ(limits().total, 1000 * mib);
    EXPECT_EQ(limits().available, 50 * mib);
}

TEST_F(MemoryLimitsTest, BindingIsLimitThatLeavesLeast) {
    EXPECT_EQ(limits().binding, no_limit);
    mount_2("/a/b");
    write_limit_2("/sys/fs/cgroup/a/b", 1000 * mib, 100 * mib);
    write_limit_2("/sys/fs/cgroup/a", 2000 * mib, 1950 * mib);
    EXPECT_EQ(limits().binding, 2000 * mib);
    write_limit_2("/sys/fs/cgroup/a", machine_total, 0);
    EXPECT_EQ(limits().binding, 1000 * mib);
    write_limit_2("/sys/fs/cgroup/a/b", machine_total, 0);
    EXPECT_EQ(limits().binding, no_limit);
}

TEST_F(MemoryLimitsTest, GroupsWithoutFilesDoNotStopSearch) {
    mount_2("/a/b/c");
    write_limit_2("/sys/fs/cgroup/a", 1000 * mib, 0);
    EXPECT_EQ(limits().total, 1000 * mib);
}

TEST_F(MemoryLimitsTest, LimitAtMountPointApplies) {
    mount_2("/a");
    write_limit_2("/sys/fs/cgroup", 1000 * mib, 400 * mib);
    EXPECT_EQ(limits().available, 600 * mib);
}

TEST_F(MemoryLimitsTest, NothingAboveTheMountPointIsRead) {
    mount_2("/a");
    write_limit_2("/sys/fs", 1 * mib, 0);
    write_limit_2("/sys", 1 * mib, 0);
    EXPECT_EQ(limits().total, machine_total);
}

TEST_F(MemoryLimitsTest, UnreadableUsageCountsAsZero) {
    mount_2("/a");
    write("/sys/fs/cgroup/a/memory.max", std::to_string(1000 * mib));
    EXPECT_EQ(limits().available, 1000 * mib);
}

TEST_F(MemoryLimitsTest, GarbageInAGroupDoesNotLimit) {
    mount_2("/a");
    write("/sys/fs/cgroup/a/memory.max", "-5\n");
    write("/sys/fs/cgroup/a/memory.high", "\n");
    EXPECT_EQ(limits().total, machine_total);
}

TEST_F(MemoryLimitsTest, LimitOfZeroLeavesNothing) {
    mount_2("/a");
    write_limit_2("/sys/fs/cgroup/a", 0, 0);
    EXPECT_EQ(limits().total, 0U);
    EXPECT_EQ(limits().available, 0U);
}

// Version 1 --------------------------------------------------------------------------------------

TEST_F(MemoryLimitsTest, Version1FilesAreRead) {
    mount_1("/docker/abc");
    write_limit_1("/sys/fs/cgroup/memory/docker/abc", 1000 * mib, 300 * mib, 100 * mib);
    EXPECT_EQ(limits().total, 1000 * mib);
    EXPECT_EQ(limits().available, 800 * mib);
}

TEST_F(MemoryLimitsTest, Version1AncestorsApply) {
    mount_1("/docker/abc");
    write_limit_1("/sys/fs/cgroup/memory/docker/abc", 1000 * mib, 300 * mib);
    write_limit_1("/sys/fs/cgroup/memory/docker", 500 * mib, 400 * mib);
    EXPECT_EQ(limits().total, 500 * mib);
    EXPECT_EQ(limits().available, 100 * mib);
}

TEST_F(MemoryLimitsTest, Version1SentinelMeansNoLimit) {
    write("/proc/meminfo", "");
    mount_1("/docker/abc");
    write_limit_1("/sys/fs/cgroup/memory/docker/abc", 9223372036854771712U, 300 * mib);
    EXPECT_EQ(limits().total, no_limit);
    EXPECT_EQ(limits().available, no_limit);
}

TEST_F(MemoryLimitsTest, GroupsOfOtherControllersAreNotRead) {
    mount_1("/docker/abc");
    write_limit_1("/sys/fs/cgroup/cpu,cpuacct/other", 1 * mib, 0);
    EXPECT_EQ(limits().total, machine_total);
}

TEST_F(MemoryLimitsTest, MemoryMayShareItsMountWithOtherControllers) {
    write("/proc/self/cgroup", "4:cpu,memory:/app\n");
    write("/proc/self/mountinfo", "35 31 0:32 / /cg rw - cgroup cgroup rw,cpu,memory\n");
    write_limit_1("/cg/app", 1000 * mib, 0);
    EXPECT_EQ(limits().total, 1000 * mib);
}

// Both, and containers ---------------------------------------------------------------------------

TEST_F(MemoryLimitsTest, HybridHierarchyUsesVersion1Limits) {
    write("/proc/self/cgroup", "9:name=systemd:/\n4:memory:/box\n1:cpu:/\n0::/\n");
    write("/proc/self/mountinfo",
          "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
          "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n");
    write("/sys/fs/cgroup/unified/cgroup.procs", "1\n");
    write_limit_1("/sys/fs/cgroup/memory/box", 1000 * mib, 300 * mib);
    EXPECT_EQ(limits().total, 1000 * mib);
    EXPECT_EQ(limits().available, 700 * mib);
}

TEST_F(MemoryLimitsTest, MountRootOfContainerIsOwnGroup) {
    mount_1("/docker/abc", "/docker/abc");
    write_limit_1("/sys/fs/cgroup/memory", 1000 * mib, 300 * mib);
    EXPECT_EQ(limits().available, 700 * mib);
}

TEST_F(MemoryLimitsTest, GroupBelowMountRootOfContainerIsFound) {
    mount_2("/docker/abc/job/1", "/docker/abc");
    write_limit_2("/sys/fs/cgroup/job/1", 1000 * mib, 300 * mib);
    write_limit_2("/sys/fs/cgroup/job", 900 * mib, 300 * mib);
    write_limit_2("/sys/fs/cgroup", 1100 * mib, 600 * mib);
    EXPECT_EQ(limits().total, 900 * mib);
    EXPECT_EQ(limits().available, 500 * mib);
}

TEST_F(MemoryLimitsTest, CgroupNamespaceShowsTheContainersGroupAsRoot) {
    mount_2("/");
    write_limit_2("/sys/fs/cgroup", 1000 * mib, 300 * mib);
    EXPECT_EQ(limits().available, 700 * mib);
}

TEST_F(MemoryLimitsTest, MountOfAnotherGroupDoesNotLimit) {
    mount_2("/docker/abc", "/docker/abcdef");
    write_limit_2("/sys/fs/cgroup", 1 * mib, 0);
    write_limit_2("/sys/fs/cgroup/docker/abc", 1 * mib, 0);
    EXPECT_EQ(limits().total, machine_total);
}

TEST_F(MemoryLimitsTest, GroupWithMountRootAsNamePrefixIsNotBelowIt) {
    mount_2("/docker/abcdef", "/docker/abc");
    write_limit_2("/sys/fs/cgroup", 1 * mib, 0);
    write_limit_2("/sys/fs/cgroupdef", 1 * mib, 0);
    EXPECT_EQ(limits().total, machine_total);
}

TEST_F(MemoryLimitsTest, MountRootAboveNamespaceIsAncestor) {
    mount_2("/", "/../..");
    write_limit_2("/sys/fs/cgroup", 1000 * mib, 300 * mib);
    EXPECT_EQ(limits().available, 700 * mib);
}

TEST_F(MemoryLimitsTest, GroupOutsideNamespaceIsNotSearched) {
    mount_2("/../other");
    write_limit_2("/sys/fs/other", 1 * mib, 0);
    write_limit_2("/sys/fs/cgroup", 1 * mib, 0);
    EXPECT_EQ(limits().total, machine_total);
}

TEST_F(MemoryLimitsTest, EscapedPathsAreDecoded) {
    write("/proc/self/cgroup", "0::/my pod/a:b\n");
    write("/proc/self/mountinfo",
          "31 23 0:27 /my\\040pod /mnt/c\\040g\\134x rw - cgroup2 cgroup2 rw\n");
    write_limit_2("/mnt/c g\\x/a:b", 1000 * mib, 0);
    EXPECT_EQ(limits().total, 1000 * mib);
}

TEST_F(MemoryLimitsTest, MountMayHaveAnyNumberOfOptionalFields) {
    write("/proc/self/cgroup", "0::/app\n");
    write_limit_2("/cg/app", 1000 * mib, 0);
    write("/proc/self/mountinfo", "31 23 0:27 / /cg rw - cgroup2 cgroup2 rw\n");
    EXPECT_EQ(limits().total, 1000 * mib);
    write("/proc/self/mountinfo", "31 23 0:27 / /cg rw shared:1 master:2 - cgroup2 none rw\n");
    EXPECT_EQ(limits().total, 1000 * mib);
}

TEST_F(MemoryLimitsTest, MountAfterThousandsOfOthersIsFound) {
    std::string mounts;
    for (unsigned number = 0; number < 3000; ++number) {
        mounts += std::to_string(number) + " 1 0:5 / /mnt/" + std::string(number % 300, 'x') +
                  " rw - overlay overlay rw,lowerdir=" + std::string(number % 90 * 40, 'l') + "\n";
    }
    write("/proc/self/cgroup", "0::/app\n");
    write("/proc/self/mountinfo", mounts + "31 23 0:27 / /cg rw - cgroup2 cgroup2 rw\n");
    write_limit_2("/cg/app", 1000 * mib, 0);
    EXPECT_EQ(limits().total, 1000 * mib);
}

TEST_F(MemoryLimitsTest, OverlongGroupPathStillReadsMountPoint) {
    mount_2("/" + std::string(1500, 'x'));
    write_limit_2("/sys/fs/cgroup", 1000 * mib, 0);
    EXPECT_EQ(limits().total, 1000 * mib);
}

}  // namespace
}  // namespace tensorpool::platform
