#include <gtest/gtest.h>
#include <sys/file.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <tensorpool/statistics_reader.hpp>

#include "statistics/fake_segment_linux.hpp"
#include "statistics/target_process_linux.hpp"

namespace tensorpool {
namespace {

using testing::FakeSegment;
using testing::TargetProcess;

[[maybe_unused]] const bool acted = testing::act_as_target_if_requested();

/// Processes that share their segments in a folder, and a reader of that folder.
class SegmentFolder : public ::testing::Test {
protected:
    SegmentFolder() {
        std::string pattern = std::filesystem::temp_directory_path() / "segments-XXXXXX";
        folder = ::mkdtemp(pattern.data());
        ::setenv("TENSORPOOL_STATISTICS_DIR", folder.c_str(), 1);
    }
    ~SegmentFolder() override {
        ::unsetenv("TENSORPOOL_STATISTICS_DIR");
        std::filesystem::remove_all(folder);
    }

    std::string path_of(std::uint64_t process) const {
        return folder + '/' + std::to_string(process);
    }
    /// Creates a file like that of a process in another container.
    void copy(FakeSegment& segment, std::uint64_t process) const {
        testing::put(segment.header().process, process);
        std::ofstream(path_of(process), std::ios::binary)
            .write(static_cast<const char*>(segment.base()), statistics::segment_bytes);
    }
    static std::optional<AttachFailure> failure_of(std::uint64_t process) {
        try {
            StatisticsReader::attach(process);
            return std::nullopt;
        } catch (const AttachError& error) {
            return error.failure();
        }
    }
    static bool is_listed(std::uint64_t process) {
        for (const ObservedProcess& one : StatisticsReader::list()) {
            if (one.process == process) return one.readable;
        }
        return false;
    }

    std::string folder;
    // larger than any number the system assigns
    static constexpr std::uint64_t foreign = 99'999'999;
};

TEST_F(SegmentFolder, ContainsReadableFileOfEachProcess) {
    TargetProcess target("p");
    ASSERT_TRUE(std::filesystem::exists(path_of(target.number())));
    EXPECT_TRUE(is_listed(target.number()));
    StatisticsReader reader = StatisticsReader::attach(target.number());
    const auto allocations = [&] { return reader.snapshot().pools.at(0).allocations; };
    EXPECT_EQ(allocations(), 100U);
    EXPECT_FALSE(reader.entries_since().entries.empty());
    target.send("f");
    EXPECT_EQ(reader.snapshot().pools.at(0).in_use_bytes, 0U);
}

TEST_F(SegmentFolder, RemoveDeadRemovesFilesOfEndedProcesses) {
    TargetProcess lives("p");
    TargetProcess killed("p");
    StatisticsReader reader = StatisticsReader::attach(killed.number());
    EXPECT_EQ(StatisticsReader::remove_dead(), 0U);
    killed.end();
    EXPECT_FALSE(reader.is_running());
    EXPECT_THROW(reader.snapshot(), AttachError);
    EXPECT_FALSE(reader.entries_since().entries.empty());
    EXPECT_FALSE(is_listed(killed.number()));
    EXPECT_EQ(failure_of(killed.number()), AttachFailure::no_process);
    EXPECT_EQ(StatisticsReader::remove_dead(), 1U);
    EXPECT_FALSE(std::filesystem::exists(path_of(killed.number())));
    EXPECT_TRUE(is_listed(lives.number()));
}

TEST_F(SegmentFolder, RemoveDeadKeepsOtherFiles) {
    std::ofstream(folder + "/123") << "a text";
    std::filesystem::create_directory(folder + "/124");
    std::filesystem::create_symlink("/etc/passwd", folder + "/125");
    EXPECT_EQ(StatisticsReader::remove_dead(), 0U);
    EXPECT_TRUE(std::filesystem::exists(folder + "/123"));
}

TEST_F(SegmentFolder, ReadsProcessOfAnotherContainerWhileFileIsLocked) {
    FakeSegment segment;
    testing::put(segment.header().process_space, 12345);
    segment.add_pool("far", 3);
    copy(segment, foreign);
    const int owner = ::open(path_of(foreign).c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(::flock(owner, LOCK_EX), 0);
    EXPECT_TRUE(is_listed(foreign));
    EXPECT_EQ(StatisticsReader::remove_dead(), 0U);
    StatisticsReader reader = StatisticsReader::attach(foreign);
    const ProcessSnapshot snapshot = reader.snapshot();
    EXPECT_EQ(snapshot.process_name, "fake");
    EXPECT_STREQ(snapshot.pools.at(0).name, "far");
    EXPECT_EQ(snapshot.minor_faults, 0U);
    ::close(owner);
    EXPECT_FALSE(reader.is_running());
    EXPECT_FALSE(is_listed(foreign));
    EXPECT_EQ(StatisticsReader::remove_dead(), 1U);
}

TEST_F(SegmentFolder, DetectsReusedProcessNumber) {
    TargetProcess target("", {"TENSORPOOL_STATISTICS=off"});
    FakeSegment segment;
    testing::put(segment.header().start_ticks, 1);  // long before the target started
    copy(segment, target.number());
    EXPECT_FALSE(is_listed(target.number()));
    EXPECT_EQ(StatisticsReader::remove_dead(), 1U);
}

TEST_F(SegmentFolder, ReportsDamagedFile) {
    FakeSegment segment;
    copy(segment, foreign);
    std::filesystem::resize_file(path_of(foreign), 100000);
    EXPECT_EQ(failure_of(foreign), AttachFailure::damaged);
    EXPECT_EQ(StatisticsReader::remove_dead(), 0U);
}

TEST_F(SegmentFolder, IsIgnoredIfVariableIsNotSet) {
    FakeSegment segment;
    copy(segment, foreign);
    ::unsetenv("TENSORPOOL_STATISTICS_DIR");
    EXPECT_EQ(StatisticsReader::remove_dead(), 0U);
    EXPECT_EQ(failure_of(foreign), AttachFailure::no_process);
    EXPECT_TRUE(std::filesystem::exists(path_of(foreign)));
}

}  // namespace
}  // namespace tensorpool
