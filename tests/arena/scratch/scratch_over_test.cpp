// Scratch over memory of the caller.

#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <string>

#include "arena/scratch/scratch_tools.hpp"
#include "limits/commit_budget.hpp"

namespace tensorpool {
namespace {

using namespace testing;

class ScratchOver : public ::testing::Test {
protected:
    alignas(4096) std::array<std::byte, 8192> buffer_{};
};

TEST_F(ScratchOver, AllocatesFromTheBuffer) {
    const std::size_t committed = limits::commit_budget().committed();
    Scratch scratch = Scratch::over(buffer_);
    EXPECT_EQ(scratch.capacity(), 8192U);
    EXPECT_EQ(scratch.allocate(100), buffer_.data());
    EXPECT_EQ(scratch.allocate(100, 4096), buffer_.data() + 4096);
    EXPECT_EQ(scratch.used(), 4096U + 128U);
    EXPECT_EQ(limits::commit_budget().committed(), committed);
    EXPECT_STREQ(scratch.statistics().name, "a caller's buffer");
    EXPECT_EQ(scratch.statistics().capacity_bytes, 8192U);
}

TEST_F(ScratchOver, ThrowsWhenFullAndStaysUsable) {
    Scratch scratch = Scratch::over(buffer_);
    void* const block = fill(scratch.allocate(8000), 8000, 1);
    try {
        scratch.allocate(200);
        ADD_FAILURE();
    } catch (const AllocationError& error) {
        EXPECT_EQ(error.asked(), 200U);
        EXPECT_NE(std::string(error.what()).find("the buffer"), std::string::npos);
    }
    EXPECT_THROW(scratch.allocate(1, 8192), AllocationError);
    EXPECT_THROW(scratch.reserve(193), AllocationError);
    scratch.reserve(192);
    EXPECT_EQ(scratch.used(), 8000U);
    EXPECT_EQ(scratch.allocate(192), buffer_.data() + 8000);
    EXPECT_THROW(scratch.allocate(1), AllocationError);
    EXPECT_EQ(scratch.statistics().refusals, 4U);
    EXPECT_EQ(scratch.capacity(), 8192U);
    EXPECT_TRUE(is_filled(block, 8000, 1));
}

TEST_F(ScratchOver, StartsAtTheFirstMultipleOf64) {
    Scratch scratch = Scratch::over(std::span(buffer_).subspan(1, 200));
    EXPECT_EQ(scratch.capacity(), 200U - 63U);
    EXPECT_EQ(scratch.allocate(1), buffer_.data() + 64);
    EXPECT_EQ(scratch.allocate(1), buffer_.data() + 128);
    EXPECT_THROW(scratch.allocate(1), AllocationError) << "9 B are left";
}

TEST_F(ScratchOver, BufferWithoutAMultipleOf64IsEmpty) {
    for (const std::span<std::byte> buffer :
         {std::span<std::byte>(), std::span(buffer_).first(0), std::span(buffer_).subspan(1, 10)}) {
        Scratch scratch = Scratch::over(buffer);
        EXPECT_EQ(scratch.capacity(), 0U);
        EXPECT_EQ(scratch.allocate(0), nullptr);
        EXPECT_THROW(scratch.allocate(1), AllocationError);
        { const ScratchScope scope(scratch, "ScratchOver.empty"); }
        scratch.reset();
        EXPECT_EQ(scratch.used(), 0U);
    }
}

TEST_F(ScratchOver, SupportsScopesMarksAndResets) {
    Scratch scratch = Scratch::over(buffer_);
    const Scratch::Mark mark = scratch.mark();
    for (int round = 0; round < 3; ++round) {
        {
            const ScratchScope scope(scratch);
            EXPECT_EQ(scratch.allocate(5000), buffer_.data());
            const ScratchScope inner(scratch, "ScratchOver.inner");
            EXPECT_EQ(scratch.allocate(64), buffer_.data() + 5056);
        }
        EXPECT_EQ(scratch.allocate(6000), buffer_.data());
        round == 1 ? scratch.release_to(mark) : scratch.reset();
    }
    EXPECT_EQ(scratch.used(), 0U);
    EXPECT_EQ(scratch.peak(), 6016U);
    EXPECT_EQ(operator_named("ScratchOver.inner").peak_bytes, 64U);
}

TEST_F(ScratchOver, OperatorWithALargerPeakUsesTheBuffer) {
    constexpr auto name = "ScratchOver.large";
    in_new_thread([] {
        const ScratchScope scope(name);
        Scratch::local().allocate(mib);
    });
    Scratch scratch = Scratch::over(buffer_);
    const ScratchScope scope(scratch, name);
    EXPECT_EQ(scratch.allocate(100), buffer_.data());
    EXPECT_EQ(scratch.statistics().refusals, 0U);
}

TEST_F(ScratchOver, TrimGivesNothingBack) {
    Scratch scratch = Scratch::over(buffer_);
    EXPECT_EQ(scratch.trim(), 0U);
    scratch.allocate(100);
    EXPECT_EQ(scratch.trim(), 0U);
    EXPECT_EQ(scratch.capacity(), 8192U);
    EXPECT_EQ(scratch.statistics().give_backs, 0U);
}

}  // namespace
}  // namespace tensorpool
