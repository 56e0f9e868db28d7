#include <tensorpool/opencv.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include <opencv2/imgproc.hpp>

#include "support/as_default.hpp"

namespace tensorpool {
namespace {

constexpr int side = 500;  // of floats: more than the largest bucket

class PooledMatAllocatorTest : public testing::Test {
protected:
    cv::Mat make_mat(int rows = side, int columns = side, int type = CV_32F) const {
        cv::Mat mat;
        mat.allocator = &allocator_;
        mat.create(rows, columns, type);
        return mat;
    }
    std::size_t blocks_in_use() const {
        return pool_.get_allocation_count() - pool_.get_deallocation_count();
    }

    MemoryPool& pool_ = get_global_memory_pool();
    mutable PooledMatAllocator allocator_{pool_};
    std::size_t blocks_before_ = blocks_in_use();
};

TEST_F(PooledMatAllocatorTest, PixelsAreInThePoolUntilTheMatIsDestroyed) {
    {
        const cv::Mat mat = make_mat();
        EXPECT_TRUE(pool_.owns(mat.data));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mat.data) % 64, 0U);
        EXPECT_TRUE(mat.isContinuous());
        EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
    }
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, RegionsShareTheBlock) {
    cv::Mat region;
    {
        const cv::Mat mat = make_mat();
        region = mat(cv::Rect(10, 20, 30, 40));
        EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
    }
    EXPECT_TRUE(pool_.owns(region.data));
    EXPECT_FALSE(region.isContinuous());
    region.setTo(1);
    EXPECT_EQ(cv::sum(region)[0], 30 * 40);
    region.release();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, SmallAndEmptyMatsWork) {
    const cv::Mat small = make_mat(1, 1, CV_8U);
    EXPECT_TRUE(pool_.owns(small.data));
    const cv::Mat empty = make_mat(0, 0);
    EXPECT_EQ(empty.data, nullptr);
}

TEST_F(PooledMatAllocatorTest, MatOfManyDimensionsIsContinuous) {
    cv::Mat mat;
    mat.allocator = &allocator_;
    const int sizes[] = {3, 5, 7, 2};
    mat.create(4, sizes, CV_16UC2);
    EXPECT_EQ(mat.step[3], 4U);
    EXPECT_EQ(mat.step[2], 8U);
    EXPECT_EQ(mat.step[1], 56U);
    EXPECT_EQ(mat.step[0], 280U);
    EXPECT_EQ(mat.u->size, 840U);
}

TEST_F(PooledMatAllocatorTest, MemoryOfTheCallerIsWrappedAndNeverFreed) {
    std::vector<float> pixels(4 * 8, 1.0F);
    const int sizes[] = {4, 6};
    std::size_t step[] = {8 * sizeof(float), sizeof(float)};
    cv::UMatData* const record = allocator_.allocate(2, sizes, CV_32F, pixels.data(), step,
                                                     cv::ACCESS_RW, cv::USAGE_DEFAULT);
    EXPECT_EQ(record->data, reinterpret_cast<uchar*>(pixels.data()));
    EXPECT_EQ(step[0], 8 * sizeof(float));
    EXPECT_EQ(blocks_in_use(), blocks_before_);
    allocator_.deallocate(record);
    EXPECT_EQ(blocks_in_use(), blocks_before_);
    EXPECT_EQ(pixels.back(), 1.0F);
}

TEST_F(PooledMatAllocatorTest, NullRecordsAreIgnored) {
    allocator_.deallocate(nullptr);
    EXPECT_FALSE(allocator_.allocate(nullptr, cv::ACCESS_RW, cv::USAGE_DEFAULT));
}

TEST_F(PooledMatAllocatorTest, GrowingAMatKeepsItInThePool) {
    const AsDefault scope(allocator_);
    cv::Mat rows(1, side, CV_32F, cv::Scalar(3));
    for (int i = 0; i < 300; ++i) rows.push_back(rows.row(0).clone());
    EXPECT_TRUE(pool_.owns(rows.data));
    EXPECT_EQ(cv::sum(rows)[0], 3.0 * side * 301);
    rows.release();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, MapsToUMatAndBack) {
    cv::Mat mat = make_mat();
    mat.setTo(2);
    {
        cv::UMat mapped = mat.getUMat(cv::ACCESS_RW);
        cv::multiply(mapped, 2, mapped);
    }
    EXPECT_EQ(cv::sum(mat)[0], 4.0 * side * side);
    mat.release();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, TooLargeARequestThrowsAndLeavesTheMatEmpty) {
    const AsDefault scope(allocator_);
    cv::Mat mat;
    const int sizes[] = {1 << 20, 1 << 20, 1 << 10};  // 2^50 bytes
    EXPECT_THROW(mat.create(3, sizes, CV_8U), std::bad_alloc);
    EXPECT_EQ(mat.data, nullptr);
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, MatWithTheAllocatorFallsBackToTheDefaultIfThePoolIsFull) {
    MemoryPool small(PoolOptions{.max_capacity = 8U << 20});
    PooledMatAllocator allocator(small);
    cv::Mat mat;
    mat.allocator = &allocator;
    mat.create(1 << 12, 1 << 12, CV_8U);  // 16 MiB
    ASSERT_NE(mat.data, nullptr);
    EXPECT_FALSE(small.owns(mat.data));
    mat.setTo(1);
    mat.create(16, 16, CV_8U);
    EXPECT_TRUE(small.owns(mat.data));
    mat.release();
    EXPECT_EQ(small.get_total_allocated(), 0U);
}

TEST_F(PooledMatAllocatorTest, DefaultAllocatorThrowsIfThePoolIsFull) {
    MemoryPool small(PoolOptions{.max_capacity = 8U << 20});
    PooledMatAllocator allocator(small);
    const AsDefault scope(allocator);
    EXPECT_THROW(cv::Mat(1 << 12, 1 << 12, CV_8U), AllocationError);
    cv::Mat mat(16, 16, CV_8U, cv::Scalar(3));
    EXPECT_THROW(mat.create(1 << 12, 1 << 12, CV_8U), AllocationError);
    EXPECT_EQ(mat.data, nullptr);
    EXPECT_EQ(small.get_total_allocated(), 0U);
}

TEST_F(PooledMatAllocatorTest, ManyThreadsMakeAndPassMats) {
    const AsDefault scope(allocator_);
    std::vector<cv::Mat> made(4);
    std::vector<std::thread> workers;
    for (cv::Mat& result : made) {
        workers.emplace_back([&result] {
            for (int round = 0; round < 100; ++round) {
                result = cv::Mat(60, 70, CV_32F, cv::Scalar(1)) + 1;
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    for (const cv::Mat& result : made) EXPECT_EQ(cv::sum(result)[0], 2.0 * 60 * 70);
    made.clear();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, DefaultAllocatorGivesTheSameResultOfAPipeline) {
    const auto sharpen = [](const cv::Mat& picture) {
        cv::Mat blurred;
        cv::Mat small;
        cv::GaussianBlur(picture, blurred, {}, 3);
        cv::pyrDown(2 * picture - blurred, small);
        return small;
    };
    cv::Mat picture(61, 83, CV_8UC3);
    cv::randu(picture, 0, 256);
    const cv::Mat expected = sharpen(picture);

    const AsDefault scope(global_mat_allocator());
    const std::size_t made_before = pool_.get_allocation_count();
    cv::Mat result = sharpen(picture);

    EXPECT_GE(pool_.get_allocation_count(), made_before + 3);

    EXPECT_TRUE(pool_.owns(result.data));
    ASSERT_EQ(result.size(), expected.size());
    EXPECT_EQ(std::memcmp(result.data, expected.data, expected.total() * 3), 0);
    result.release();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

}  // namespace
}  // namespace tensorpool
