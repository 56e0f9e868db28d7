#include "platform/memory/memory_limits_linux.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "platform/memory/control_groups_linux.hpp"
#include "support/child_process.hpp"
#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

using testing::holds_in_child;

/// A system whose group is /jobs/one, of version 1. Its files accept what is written.
class PressureEventTest : public ::testing::Test {
protected:
    void SetUp() override {
        files_.write("/proc/self/cgroup", "4:memory:/jobs/one\n");
        files_.write("/proc/self/mountinfo",
                     "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
        for (const std::string group : {"/jobs/one", "/jobs"}) {
            files_.write(folder_ + group + "/cgroup.event_control", "");
            files_.write(folder_ + group + "/memory.pressure_level", "");
        }
    }
    void TearDown() override { close_pressure_event(event_); }
    void open() { event_ = open_pressure_event(files_.root().c_str()); }
    std::string request_to(const std::string& group) {
        return files_.read(folder_ + group + "/cgroup.event_control");
    }

    const std::string folder_ = "/sys/fs/cgroup/memory";
    testing::FileTree files_;
    PressureEvent event_;
};

TEST_F(PressureEventTest, RequestsReportsOfTheGroupAndItsAncestors) {
    open();
    ASSERT_GE(event_.file, 0);
    for (const std::string group : {"/jobs/one", "/jobs"}) {
        const std::string request = request_to(group);
        EXPECT_EQ(request.find(std::to_string(event_.file) + " "), 0U) << request;
        EXPECT_TRUE(request.ends_with(" medium,local")) << request;
    }
    EXPECT_EQ(count_reports(event_), 0U);
}

TEST_F(PressureEventTest, DescriptorDoesNotBlockAndIsClosedByExec) {
    open();
    EXPECT_NE(fcntl(event_.file, F_GETFL) & O_NONBLOCK, 0);
    EXPECT_NE(fcntl(event_.file, F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(PressureEventTest, OneGroupThatAcceptsSuffices) {
    std::filesystem::remove(files_.path(folder_ + "/jobs/one/cgroup.event_control"));
    open();
    EXPECT_GE(event_.file, 0);
}

TEST_F(PressureEventTest, NothingStaysOpenIfTheSystemRefuses) {
    const int lowest = dup(0);
    close(lowest);
    std::filesystem::remove(files_.path(folder_ + "/jobs/memory.pressure_level"));
    std::filesystem::remove(files_.path(folder_ + "/jobs/one/memory.pressure_level"));
    open();
    EXPECT_EQ(event_.file, -1);
    files_.write("/proc/self/cgroup", "0::/jobs/one\n");
    files_.write("/proc/self/mountinfo", "31 23 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    open();
    EXPECT_EQ(event_.file, -1) << "version 2 has no such reports";
    EXPECT_EQ(count_reports(event_), 0U);
    const int next = dup(0);
    EXPECT_EQ(next, lowest);
    close(next);
}

TEST_F(PressureEventTest, ParentAndChildSeeAllReports) {
    open();
    ASSERT_EQ(eventfd_write(event_.file, 1), 0);
    EXPECT_TRUE(holds_in_child([this] {
        return count_reports(event_) == 1 && eventfd_write(event_.file, 20) == 0 &&
               count_reports(event_) == 21;
    }));
    EXPECT_EQ(count_reports(event_), 21U);
    EXPECT_EQ(count_reports(event_), 21U);
}

TEST_F(PressureEventTest, DescriptorOfTheProgramWithTheSameNumberIsLeftAlone) {
    open();
    const int other = eventfd(5, 0);
    ASSERT_EQ(dup2(other, event_.file), event_.file);
    EXPECT_EQ(count_reports(event_), 0U);
    close_pressure_event(event_);
    EXPECT_NE(fcntl(event_.file, F_GETFD), -1) << "it is the program's";
    close(event_.file);
    EXPECT_EQ(count_reports(event_), 0U);
    close(other);
}

/// A real group below the one of this process. Skips the test if there can be none.
class PressureEventGroupTest : public ::testing::Test {
protected:
    void SetUp() override {
        for_each_memory_group("", [this](GroupVersion version, Path& group) {
            if (version == GroupVersion::one && folder_.empty()) folder_ = group.view();
        });
        if (folder_.empty()) GTEST_SKIP() << "the process has no memory group of version 1";
        folder_ += "/tensorpool_pressure_" + std::to_string(getpid());
        if (mkdir(folder_.c_str(), 0755) != 0) {
            const std::string problem = std::strerror(errno);
            const std::string folder = std::exchange(folder_, "");
            GTEST_SKIP() << "mkdir " << folder << ": " << problem;
        }
    }
    void TearDown() override {
        if (!folder_.empty()) rmdir(folder_.c_str());
    }
    bool write(const char* file, std::size_t value) const {
        std::ofstream stream(folder_ + "/" + file);
        stream << value << std::flush;
        return stream.good();
    }

    std::string folder_;
};

constexpr std::size_t mib = std::size_t{1} << 20;

// ThreadSanitizer would record each access in memory that is charged to the group.
__attribute__((no_sanitize("thread"))) void read_each_page(const volatile char* bytes) {
    for (std::size_t at = 0; at < 64 * mib; at += 4096) (void)bytes[at];
}

// A file that is larger than the group's limit is read through a mapping again and again.
TEST_F(PressureEventGroupTest, PressureInTheGroupIsReported) {
    constexpr int skipped = 2;
    const int ended = testing::exit_code_of_child([&] {
        if (!write("memory.limit_in_bytes", 32 * mib) || !write("cgroup.procs", 0)) return skipped;
        const PressureEvent event = open_pressure_event();
        if (event.file < 0) return skipped;
        const int file = open(".", O_TMPFILE | O_RDWR, 0600);
        if (file < 0 || ftruncate(file, 64 * mib) != 0) return skipped;
        struct statfs found = {};
        if (fstatfs(file, &found) != 0 || found.f_type == TMPFS_MAGIC) return skipped;
        void* const mapped = mmap(nullptr, 64 * mib, PROT_READ, MAP_SHARED, file, 0);
        if (mapped == MAP_FAILED) return skipped;
        for (int round = 0; round != 20; ++round) {
            read_each_page(static_cast<const char*>(mapped));
            if (count_reports(event) != 0) return 0;
        }
        return 1;
    });
    if (ended == skipped)
        GTEST_SKIP() << "the group accepts no limit or no request, or the folder is in memory";
    EXPECT_EQ(ended, 0);
}

}  // namespace
}  // namespace tensorpool::platform
