#include <tensorpool/statistics_reader.hpp>

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "statistics/target_process_linux.hpp"

namespace tensorpool {
namespace {

namespace fs = std::filesystem;
using testing::TargetProcess;

[[maybe_unused]] const bool acted = testing::act_as_target_if_requested();

/// Opens the segment of a process, as the process would hand it over.
int segment_of(const TargetProcess& target) {
    const std::string folder = "/proc/" + std::to_string(target.number()) + "/fd";
    for (const fs::directory_entry& file : fs::directory_iterator(folder)) {
        if (fs::read_symlink(file.path()).string().starts_with("/memfd:tensorpool ")) {
            return ::open(file.path().c_str(), O_RDONLY | O_CLOEXEC);
        }
    }
    return -1;
}

bool is_open(int descriptor) {
    return ::fcntl(descriptor, F_GETFD) >= 0;
}

TEST(HandedOverSegment, IsReadDuringAndAfterProcess) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::take_over(segment_of(target));
    EXPECT_EQ(reader.process(), target.number());
    EXPECT_TRUE(reader.is_running());
    const ProcessSnapshot alive = reader.snapshot();
    ASSERT_EQ(alive.pools.size(), 1U);
    EXPECT_EQ(alive.pools[0].allocations, 100U);
    EXPECT_GT(alive.resident_bytes, 0U);

    ASSERT_TRUE(target.send("f"));
    target.kill();
    target.wait_until_zombie();
    EXPECT_FALSE(reader.is_running());
    const ProcessSnapshot ended = reader.snapshot();
    EXPECT_EQ(ended.process, target.number());
    EXPECT_EQ(ended.process_name, alive.process_name);
    ASSERT_EQ(ended.pools.size(), 1U);
    EXPECT_EQ(ended.pools[0].deallocations, 100U);
    EXPECT_EQ(ended.resident_bytes, 0U);
    target.end();
    EXPECT_EQ(reader.snapshot().pools.size(), 1U);
}

// The process cannot answer after exec: the mapping is gone when exec has succeeded.
TEST(HandedOverSegment, ExecCountsAsEndOfProcess) {
    TargetProcess target("p");
    StatisticsReader reader = StatisticsReader::take_over(segment_of(target));
    target.send("x");
    EXPECT_FALSE(reader.is_running());
    EXPECT_EQ(reader.snapshot().pools.size(), 1U);
}

TEST(HandedOverSegment, InvalidDescriptorIsClosedAndReported) {
    const int empty = ::memfd_create("tensorpool", MFD_CLOEXEC);
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    for (const int descriptor : {empty, ends[0], -1}) {
        try {
            StatisticsReader::take_over(descriptor);
            ADD_FAILURE() << "accepted";
        } catch (const AttachError& error) {
            EXPECT_EQ(error.failure(), AttachFailure::damaged) << error.what();
            EXPECT_EQ(std::string(error.what()).find("tensorpool: the segment handed over: "), 0U)
                << error.what();
        }
        EXPECT_FALSE(descriptor >= 0 && is_open(descriptor));
    }
    ::close(ends[1]);
}

}  // namespace
}  // namespace tensorpool
