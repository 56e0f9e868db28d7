#include "develop/context_mat_allocator.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <thread>
#include <vector>

#include "support/as_default.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t mat_bytes = 64 * 64 * sizeof(float);

class ContextMatAllocatorTest : public testing::Test {
protected:
    cv::Mat make_mat() const {
        cv::Mat mat;
        mat.allocator = &memory_;
        mat.create(64, 64, CV_32F);
        return mat;
    }

    Context context_;
    mutable ContextMatAllocator memory_{context_};
};

TEST_F(ContextMatAllocatorTest, OutsideAScopePixelsLieInTheArena) {
    const cv::Mat mat = make_mat();
    EXPECT_EQ(context_.used(), mat_bytes);
    EXPECT_EQ(context_.scratch_used(), 0U);
    EXPECT_TRUE(mat.isContinuous());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mat.data) % 64, 0U);
}

TEST_F(ContextMatAllocatorTest, InsideAScopeTheyLieInScratch) {
    {
        const MatScope scope(memory_, "test");
        const cv::Mat mat = make_mat();
        EXPECT_EQ(context_.scratch_used(), mat_bytes);
        EXPECT_EQ(context_.used(), 0U);
    }
    EXPECT_EQ(context_.scratch_used(), 0U);
}

TEST_F(ContextMatAllocatorTest, InsideAnotherThreadsScopeTheyLieInTheArena) {
    const MatPhase phase(memory_, "phase");
    const MatScope scope(memory_, "test");
    std::thread([&] {
        const cv::Mat mat = make_mat();
        EXPECT_EQ(context_.used(), mat_bytes);
        EXPECT_EQ(context_.scratch_used(), 0U);
    }).join();
}

TEST_F(ContextMatAllocatorTest, InsideTheScopeOfAnotherContextTheyLieInTheArena) {
    Context other;
    const ContextMatAllocator others(other);
    const MatScope scope(others, "test");
    const cv::Mat mat = make_mat();
    EXPECT_EQ(context_.used(), mat_bytes);
}

TEST_F(ContextMatAllocatorTest, MemoryOfADestroyedMatStaysUntilThePhaseEnds) {
    make_mat();
    EXPECT_EQ(context_.used(), mat_bytes);
}

TEST_F(ContextMatAllocatorTest, AnExistingResultKeepsItsMemoryInTheArena) {
    const AsDefault all(memory_);
    const cv::Mat one(64, 64, CV_32F, cv::Scalar(1));
    cv::Mat sum(64, 64, CV_32F);
    const std::size_t used = context_.used();
    {
        const MatScope scope(memory_, "test");
        sum = one + one.mul(one);
    }
    EXPECT_EQ(context_.used(), used);
    EXPECT_EQ(cv::sum(sum)[0], 2.0 * 64 * 64);
}

TEST_F(ContextMatAllocatorTest, TheCallersMemoryIsWrappedAndNotCounted) {
    std::vector<float> pixels(4 * 8, 1.0F);
    const int sizes[] = {4, 6};
    std::size_t step[] = {8 * sizeof(float), sizeof(float)};
    cv::UMatData* record = nullptr;
    {
        const MatPhase phase(memory_, "phase");
        record = memory_.allocate(2, sizes, CV_32F, pixels.data(), step, cv::ACCESS_RW,
                                  cv::USAGE_DEFAULT);
    }
    EXPECT_EQ(record->data, reinterpret_cast<uchar*>(pixels.data()));
    EXPECT_EQ(step[0], 8 * sizeof(float));
    EXPECT_EQ(context_.used(), 0U);
    memory_.deallocate(record);
}

TEST_F(ContextMatAllocatorTest, MapsToUMatAndBack) {
    cv::Mat mat = make_mat();
    mat.setTo(2);
    {
        cv::UMat mapped = mat.getUMat(cv::ACCESS_RW);
        cv::multiply(mapped, 2, mapped);
    }
    EXPECT_EQ(cv::sum(mat)[0], 4.0 * 64 * 64);
}

TEST_F(ContextMatAllocatorTest, NullRecordsAreIgnored) {
    memory_.deallocate(nullptr);
    EXPECT_FALSE(memory_.allocate(nullptr, cv::ACCESS_RW, cv::USAGE_DEFAULT));
}

TEST_F(ContextMatAllocatorTest, ATooLargeMatThrowsAndStaysEmpty) {
    const AsDefault all(memory_);
    const int sizes[] = {1 << 20, 1 << 20, 1 << 10};  // 2^50 bytes
    cv::Mat mat;
    EXPECT_THROW(mat.create(3, sizes, CV_8U), std::bad_alloc);
    {
        const MatScope scope(memory_, "test");
        EXPECT_THROW(mat.create(3, sizes, CV_8U), std::bad_alloc);
    }
    EXPECT_EQ(mat.data, nullptr);
    EXPECT_EQ(context_.used(), 0U);
}

}  // namespace
}  // namespace tensorpool
