#include "develop/develop.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "develop/context_mat_allocator.hpp"
#include "support/as_default.hpp"

namespace tensorpool::photos {
namespace {

/// Sets the number of OpenCV's threads while it exists.
class Threads {
public:
    explicit Threads(int count) { cv::setNumThreads(count); }
    ~Threads() { cv::setNumThreads(before_); }
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

private:
    int before_ = cv::getNumThreads();
};

class DevelopInContextTest : public testing::Test {
protected:
    void expect_same(const cv::Mat& picture) {
        const cv::Mat expected = develop(picture);
        const AsDefault all(memory_);
        const MatPhase phase(memory_, "picture");
        const cv::Mat result = develop_in_context(picture, memory_);
        ASSERT_EQ(result.size(), expected.size());
        ASSERT_EQ(result.type(), expected.type());
        EXPECT_EQ(std::memcmp(result.data, expected.data, expected.total() * 3), 0);
    }

    Context context_;
    ContextMatAllocator memory_{context_};
};

TEST_F(DevelopInContextTest, ResultsAreIdenticalOnOneThreadAndOnSeveral) {
    for (const int count : {1, 2}) {
        const Threads threads(count);
        for (const cv::Size size : {cv::Size(1, 1), cv::Size(1, 7), cv::Size(1200, 900)}) {
            cv::Mat picture(size, CV_8UC3);
            cv::randu(picture, 0, 256);
            expect_same(picture);
        }
    }
}

TEST_F(DevelopInContextTest, TheArenaHoldsTheResultAndTwoPicturesInFloats) {
    const cv::Mat picture(64, 64, CV_8UC3, cv::Scalar(10, 100, 200));
    for (int i = 0; i < 3; ++i) expect_same(picture);
    EXPECT_EQ(context_.used(), 0U);
    EXPECT_EQ(context_.peak(), 64U * 64 * (3 + 2 * 12));
    EXPECT_EQ(context_.scratch_used(), 0U);
}

TEST_F(DevelopInContextTest, ThrowsAndFreesEverythingIfScratchIsTooSmall) {
    const cv::Mat picture(64, 64, CV_8UC3, cv::Scalar(10, 100, 200));
    std::vector<std::byte> buffer(64 * 64 * 12 * 2);  // denoise needs 3
    context_.use_scratch(buffer);
    {
        const AsDefault all(memory_);
        const MatPhase phase(memory_, "picture");
        EXPECT_THROW(develop_in_context(picture, memory_), std::bad_alloc);
    }
    EXPECT_EQ(context_.used(), 0U);
    EXPECT_EQ(context_.scratch_used(), 0U);
    context_.use_scratch({});
    expect_same(picture);
}

TEST_F(DevelopInContextTest, AnotherDefaultAllocatorIsRejected) {
    const cv::Mat picture(8, 8, CV_8UC3, cv::Scalar::all(1));
    EXPECT_THROW(develop_in_context(picture, memory_), cv::Exception);
}

}  // namespace
}  // namespace tensorpool::photos
