#include "platform/memory/page_faults.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

class PageFaults : public ::testing::Test {
protected:
    void SetUp() override { begin(FaultScope::all); }
    void TearDown() override {
        if (source_.file >= 0) close_fault_source(source_);
        if (pages_ != nullptr) unmap(pages_, bytes_);
    }

    void begin(FaultScope at_most) {
        if (source_.file >= 0) close_fault_source(source_);
        source_ = open_fault_source(at_most);
        if (source_.scope == FaultScope::none) GTEST_SKIP() << "userfaultfd is not allowed here";
        if (pages_ == nullptr) pages_ = static_cast<char*>(map(bytes_, page_bytes()));
        content_.assign(bytes_, 'c');
    }

    const std::size_t bytes_ = 4 * page_bytes();
    FaultSource source_;
    char* pages_ = nullptr;
    std::vector<char> content_;
};

TEST_F(PageFaults, ReadOfMissingPageWaitsUntilItIsFilled) {
    ASSERT_TRUE(watch_faults(source_, pages_, bytes_));
    char seen = 0;
    std::thread reader([&] { seen = static_cast<volatile char*>(pages_)[page_bytes() + 7]; });
    PageFault fault;
    ASSERT_TRUE(next_fault(source_, fault));
    EXPECT_EQ(static_cast<char*>(fault.address) - pages_,
              static_cast<std::ptrdiff_t>(page_bytes()));
    EXPECT_FALSE(fault.is_write);
    EXPECT_TRUE(fill_missing(source_, pages_, content_.data(), bytes_, Writable::no));
    reader.join();
    EXPECT_EQ(seen, 'c');
}

TEST_F(PageFaults, PresentPagesAreKeptAndTheRestIsFilled) {
    pages_[page_bytes()] = 'p';
    ASSERT_TRUE(watch_faults(source_, pages_, bytes_));
    EXPECT_TRUE(fill_missing(source_, pages_, content_.data(), bytes_, Writable::yes));
    EXPECT_EQ(pages_[0], 'c');
    EXPECT_EQ(pages_[page_bytes()], 'p');
    EXPECT_EQ(pages_[bytes_ - 1], 'c');
}

// The test reads the byte while the write waits, which ThreadSanitizer would report as a race.
__attribute__((no_sanitize("thread"))) void write_unseen(volatile char& byte, char value) {
    byte = value;
}

TEST_F(PageFaults, WriteToProtectedPageWaitsUntilItIsWritable) {
    std::memset(pages_, 'o', bytes_);
    ASSERT_TRUE(watch_faults(source_, pages_, bytes_));
    ASSERT_TRUE(protect_from_writes(source_, pages_, bytes_, Writable::no));
    EXPECT_EQ(pages_[0], 'o');
    std::thread writer([&] { write_unseen(pages_[0], 'w'); });
    PageFault fault;
    ASSERT_TRUE(next_fault(source_, fault));
    EXPECT_TRUE(fault.is_write);
    EXPECT_EQ(pages_[0], 'o');
    EXPECT_TRUE(protect_from_writes(source_, pages_, bytes_, Writable::yes));
    writer.join();
    EXPECT_EQ(pages_[0], 'w');
}

TEST_F(PageFaults, WithoutWatchMissingPagesReadAsZeros) {
    ASSERT_TRUE(watch_faults(source_, pages_, bytes_));
    unwatch_faults(source_, pages_, bytes_);
    EXPECT_EQ(pages_[0], 0);
}

TEST_F(PageFaults, SystemCallFailsIfOnlyFaultsOfInstructionsAreServed) {
    begin(FaultScope::user_mode);
    if (IsSkipped()) return;
    ASSERT_EQ(source_.scope, FaultScope::user_mode);
    ASSERT_TRUE(watch_faults(source_, pages_, bytes_));
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(write(ends[1], pages_, 1), -1);
    EXPECT_EQ(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
}

TEST_F(PageFaults, CloseLeavesADescriptorOfTheProgram) {
    const int number = source_.file;
    close(number);
    const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(dup2(other, number), number);
    close_fault_source(source_);
    EXPECT_NE(fcntl(number, F_GETFD), -1);
    close(other);
    close(number);
    source_ = {};
}

TEST(NoPageFaults, NoneIsOpenedIfNoneIsAllowed) {
    EXPECT_EQ(open_fault_source(FaultScope::none).scope, FaultScope::none);
}

}  // namespace
}  // namespace tensorpool::platform
