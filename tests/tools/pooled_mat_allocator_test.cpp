#include "pooled_mat_allocator.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "as_default.hpp"
#include "develop.hpp"

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

TEST_F(PooledMatAllocatorTest, PixelsLieInThePoolUntilTheMatGoes) {
    {
        const cv::Mat mat = make_mat();
        EXPECT_TRUE(pool_.owns(mat.data));
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mat.data) % 64, 0U);
        EXPECT_TRUE(mat.isContinuous());
        EXPECT_EQ(blocks_in_use(), blocks_before_ + 1);
    }
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, RegionsAndCopiesOfTheHeadShareTheBlock) {
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

TEST_F(PooledMatAllocatorTest, SmallAndEmptyMatsWorkToo) {
    const cv::Mat small = make_mat(1, 1, CV_8U);
    EXPECT_TRUE(pool_.owns(small.data));
    const cv::Mat empty = make_mat(0, 0);
    EXPECT_EQ(empty.data, nullptr);
}

TEST_F(PooledMatAllocatorTest, ManyDimensionsAreContinuous) {
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

TEST_F(PooledMatAllocatorTest, TheCallersMemoryIsWrappedAndNeverFreed) {
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

TEST_F(PooledMatAllocatorTest, GrowingAMatMovesItWithinThePool) {
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

TEST_F(PooledMatAllocatorTest, MoreThanThereIsThrowsAndLeavesTheMatEmpty) {
    const AsDefault scope(allocator_);
    cv::Mat mat;
    const int sizes[] = {1 << 20, 1 << 20, 1 << 10};  // 2^50 bytes
    EXPECT_THROW(mat.create(3, sizes, CV_8U), std::bad_alloc);
    EXPECT_EQ(mat.data, nullptr);
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

TEST_F(PooledMatAllocatorTest, AsTheDefaultItServesAWholePipelineWithTheSameResult) {
    cv::Mat picture(61, 83, CV_8UC3);
    cv::randu(picture, 0, 256);
    const cv::Mat expected = photos::develop(picture);

    const AsDefault scope(global_mat_allocator());
    cv::Mat result = photos::develop(picture);

    EXPECT_TRUE(pool_.owns(result.data));
    ASSERT_EQ(result.size(), expected.size());
    EXPECT_EQ(std::memcmp(result.data, expected.data, expected.total() * 3), 0);
    result.release();
    EXPECT_EQ(blocks_in_use(), blocks_before_);
}

}  // namespace
}  // namespace tensorpool
