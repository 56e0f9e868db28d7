#include "platform/memory/memory_limits_linux.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

class MemoryPressureTest : public ::testing::Test {
protected:
    void write(const std::string& path, const std::string& text) { files_.write(path, text); }
    MemoryPressure read() { return read_memory_pressure(files_.root().c_str()); }

    testing::FileTree files_;
};

TEST_F(MemoryPressureTest, MachineWithoutCountsHasNone) {
    const MemoryPressure pressure = read();
    EXPECT_EQ(pressure.machine_stalled_us, 0U);
    EXPECT_EQ(pressure.group_stalled_us, 0U);
    EXPECT_EQ(pressure.events, 0U);
}

TEST_F(MemoryPressureTest, StallsOfTheMachineAreItsTotal) {
    write("/proc/pressure/memory",
          "some avg10=1.53 avg60=0.20 avg300=0.05 total=123456789\n"
          "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
    EXPECT_EQ(read().machine_stalled_us, 123456789U);
}

TEST_F(MemoryPressureTest, UnknownTextCountsNothing) {
    write("/proc/pressure/memory", "full avg10=0.00 total=7\n");
    EXPECT_EQ(read().machine_stalled_us, 0U);
    write("/proc/pressure/memory", "some avg10=0.00 total=many\n");
    EXPECT_EQ(read().machine_stalled_us, 0U);
}

TEST_F(MemoryPressureTest, GroupOfVersionTwoCountsEventsAndStalls) {
    write("/proc/self/cgroup", "0::/jobs/one\n");
    write("/proc/self/mountinfo", "31 23 0:27 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n");
    write("/sys/fs/cgroup/jobs/one/memory.events",
          "low 9\nhigh 3\nmax 4\noom 1\noom_kill 1\noom_group_kill 0\n");
    write("/sys/fs/cgroup/jobs/one/memory.pressure", "some avg10=0.00 total=55\n");
    write("/sys/fs/cgroup/jobs/memory.events", "low 0\nhigh 10\nmax 0\noom 0\n");
    const MemoryPressure pressure = read();
    EXPECT_EQ(pressure.events, 18U) << "of the group and its ancestors";
    EXPECT_EQ(pressure.group_stalled_us, 55U);
}

TEST_F(MemoryPressureTest, GroupOfVersionOneCountsFailedCharges) {
    write("/proc/self/cgroup", "4:memory:/jobs\n");
    write("/proc/self/mountinfo",
          "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    write("/sys/fs/cgroup/memory/jobs/memory.failcnt", "12\n");
    EXPECT_EQ(read().events, 12U);
}

}  // namespace
}  // namespace tensorpool::platform
