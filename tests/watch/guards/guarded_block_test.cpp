#include "watch/guards/guarded_area.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

namespace tensorpool::watch {
namespace {

/// A guarded block of 100 bytes in one page, at `offset` bytes from the beginning of the page.
class GuardedBlockTest : public ::testing::Test {
protected:
    static constexpr std::size_t requested = 100;

    void begin_at(std::size_t offset) {
        block_.begin = page_.data() + offset;
        block_.requested = requested;
        block_.pages = {0, 1};
    }
    /// Returns the offset of the damaged byte if the byte at `offset` is changed, or -1.
    std::ptrdiff_t found_if_changed(std::size_t offset) {
        ++page_[offset];
        const void* const found = block_.find_damage(page_.data());
        --page_[offset];
        return found == nullptr ? -1 : static_cast<const char*>(found) - page_.data();
    }

    std::array<char, page_bytes> page_ = {};
    GuardedBlock block_;
};

TEST_F(GuardedBlockTest, SlackIsWhatLiesBehindTheRequestedBytes) {
    begin_at(3968);
    const auto slack = block_.slack(page_.data());
    EXPECT_EQ(reinterpret_cast<char*>(slack.data()), page_.data() + 4068);
    EXPECT_EQ(slack.size(), 28U);
}

TEST_F(GuardedBlockTest, FrontIsAtMost64BytesAndWithinThePage) {
    begin_at(3968);
    EXPECT_EQ(block_.front(page_.data()).size(), 64U);
    EXPECT_EQ(reinterpret_cast<char*>(block_.front(page_.data()).data()), page_.data() + 3904);
    begin_at(10);
    EXPECT_EQ(block_.front(page_.data()).size(), 10U);
    EXPECT_EQ(reinterpret_cast<char*>(block_.front(page_.data()).data()), page_.data());
}

TEST_F(GuardedBlockTest, EveryChangedByteBesideTheBlockIsFound) {
    begin_at(3968);
    block_.fill_slack(page_.data());
    EXPECT_EQ(block_.find_damage(page_.data()), nullptr);
    for (const std::size_t offset : {3904U, 3967U, 4068U, 4095U}) {
        EXPECT_EQ(found_if_changed(offset), static_cast<std::ptrdiff_t>(offset));
    }
    for (const std::size_t offset : {3903U, 3968U, 4067U}) EXPECT_EQ(found_if_changed(offset), -1);
}

TEST_F(GuardedBlockTest, FillingChangesNoByteOfTheBlock) {
    begin_at(3968);
    block_.fill_slack(page_.data());
    for (std::size_t i = 0; i != requested; ++i) EXPECT_EQ(block_.begin[i], 0) << i;
    EXPECT_EQ(page_[3903], 0);
}

TEST_F(GuardedBlockTest, StackHasTheCallsOfTheThread) {
    block_.allocated.capture();
    EXPECT_NE(block_.allocated.thread, 0U);
    EXPECT_GT(block_.allocated.view().size(), 1U);
}

}  // namespace
}  // namespace tensorpool::watch
