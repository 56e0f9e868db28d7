#include "arena/scratch/scratch_state.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "arena/arena_table.hpp"
#include "arena/scratch/scratch_tools.hpp"
#include "limits/commit_budget.hpp"
#include "platform/platform.hpp"

namespace tensorpool::arena {
namespace {

using namespace testing;
using platform::whole_pages;

TEST(JoinedBytes, FollowTheSteps) {
    EXPECT_EQ(joined_bytes(0), 16 * mib);
    EXPECT_EQ(joined_bytes(1), 16 * mib);
    EXPECT_EQ(joined_bytes(8 * mib), 16 * mib);
    EXPECT_EQ(joined_bytes(8 * mib + 1), 16 * mib + 2);
    EXPECT_EQ(joined_bytes(64 * mib - 1), 128 * mib - 2);
    EXPECT_EQ(joined_bytes(64 * mib), 192 * mib);
    EXPECT_EQ(joined_bytes(512 * mib - 1), 640 * mib - 1);
    EXPECT_EQ(joined_bytes(512 * mib), 576 * mib);
    EXPECT_EQ(joined_bytes(8 * gib), 8 * gib + 64 * mib);
}

class Chunks : public ::testing::Test {
protected:
    std::size_t add(std::size_t bytes, std::size_t alignment = 64) {
        return chunks_.add_next(bytes, bytes, alignment, attempt_);
    }

    statistics::ArenaTotals totals_;
    ScratchChunks chunks_{totals_};
    Attempt attempt_;
};

TEST_F(Chunks, FirstChunkBecomesThePresentOne) {
    EXPECT_TRUE(chunks_.empty());
    EXPECT_EQ(add(100), whole_pages(100));
    EXPECT_TRUE(chunks_.is_one());
    EXPECT_EQ(chunks_.present_number(), 0U);
    EXPECT_EQ(chunks_.present().bytes(), whole_pages(100));
    EXPECT_EQ(chunks_.present().below, 0U);
    std::memset(chunks_.present().begin, 1, 4096);
}

TEST_F(Chunks, ContainTheBytesOfAllChunks) {
    EXPECT_FALSE(chunks_.contain(&chunks_));
    EXPECT_FALSE(chunks_.contain(nullptr));
    add(100);
    const std::byte* const first = chunks_.present().begin;
    EXPECT_FALSE(chunks_.contain(first - 1));
    EXPECT_FALSE(chunks_.contain(chunks_.present().end));
    add(5000);
    chunks_.go_on(640);
    const ScratchChunks::Chunk second = chunks_.present();
    EXPECT_TRUE(chunks_.contain(first));
    EXPECT_TRUE(chunks_.contain(first + whole_pages(100) - 1));
    EXPECT_TRUE(chunks_.contain(second.begin));
    EXPECT_TRUE(chunks_.contain(second.end - 1));
    EXPECT_FALSE(chunks_.contain(&chunks_));
    chunks_.drop_all();
    EXPECT_FALSE(chunks_.contain(first));
}

TEST_F(Chunks, NextChunkIsUsedAfterGoOn) {
    add(100);
    const std::byte* const first = chunks_.present().begin;
    EXPECT_EQ(add(5000), whole_pages(5000));
    EXPECT_EQ(chunks_.present().begin, first);
    EXPECT_FALSE(chunks_.is_one());
    chunks_.go_on(640);
    EXPECT_EQ(chunks_.present_number(), 1U);
    EXPECT_EQ(chunks_.present().bytes(), whole_pages(5000));
    EXPECT_EQ(chunks_.present().below, 640U);
    chunks_.go_back_to(0);
    EXPECT_EQ(chunks_.present().begin, first);
}

TEST_F(Chunks, NextChunkReplacesLaterChunks) {
    add(100);
    add(5000);
    chunks_.go_on(0);
    add(10'000);
    chunks_.go_back_to(0);
    const std::size_t last = whole_pages(20'000);
    EXPECT_EQ(add(20'000), last);
    EXPECT_EQ(totals_.capacity_bytes, whole_pages(100) + last);
    EXPECT_EQ(totals_.given_back_bytes, whole_pages(5000) + whole_pages(10'000));
    EXPECT_TRUE(chunks_.next_has(last, 64));
    EXPECT_FALSE(chunks_.next_has(last + 1, 64));
}

TEST_F(Chunks, NextHasCountsAlignment) {
    EXPECT_FALSE(chunks_.next_has(1, 64));
    add(100);
    EXPECT_FALSE(chunks_.next_has(1, 64)) << "the only chunk is the present one";
    add(2 * mib, mib);
    EXPECT_TRUE(chunks_.next_has(2 * mib, mib));
    chunks_.go_on(0);
    EXPECT_TRUE(is_aligned(chunks_.present().begin, mib));
}

TEST_F(Chunks, BudgetCountsTheirBytes) {
    const std::size_t before = limits::commit_budget().committed();
    add(mib);
    add(2 * mib);
    EXPECT_EQ(limits::commit_budget().committed(), before + 3 * mib);
    EXPECT_EQ(chunks_.drop_spares(), 2 * mib);
    EXPECT_EQ(chunks_.drop_spares(), 0U);
    EXPECT_EQ(chunks_.drop_all(), mib);
    EXPECT_TRUE(chunks_.empty());
    EXPECT_EQ(chunks_.drop_all(), 0U);
    EXPECT_EQ(limits::commit_budget().committed(), before);
    EXPECT_EQ(totals_.capacity_bytes, 0U);
    EXPECT_EQ(totals_.peak_capacity_bytes, 3 * mib);
    EXPECT_EQ(totals_.growths, 2U);
    EXPECT_EQ(totals_.give_backs, 2U);
}

TEST_F(Chunks, RequestAboveAvailableMemoryIsRefused) {
    add(mib);
    EXPECT_EQ(add(SIZE_MAX / 4), 0U);
    EXPECT_STREQ(attempt_.refusal.limit, "available memory");
    EXPECT_EQ(attempt_.refusal.limit_bytes, limits::commit_budget().ceiling());
    EXPECT_TRUE(chunks_.is_one());
    EXPECT_EQ(totals_.growths, 1U);
}

TEST_F(Chunks, BufferIsTheOnlyChunkAndStays) {
    alignas(64) std::array<std::byte, 1000> buffer;
    chunks_.set_buffer(buffer.data(), buffer.data() + buffer.size());
    EXPECT_TRUE(chunks_.is_buffer());
    EXPECT_EQ(chunks_.present().begin, buffer.data());
    EXPECT_EQ(add(1), 0U);
    EXPECT_STREQ(attempt_.refusal.limit, "the buffer");
    EXPECT_EQ(attempt_.refusal.limit_bytes, 1000U);
    EXPECT_EQ(chunks_.drop_spares(), 0U);
    EXPECT_EQ(chunks_.drop_all(), 0U);
    EXPECT_TRUE(chunks_.is_one());
}

}  // namespace
}  // namespace tensorpool::arena
