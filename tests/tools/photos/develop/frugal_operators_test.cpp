#include "develop/operators.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "develop/context_mat_allocator.hpp"
#include "support/as_default.hpp"

namespace tensorpool::photos {
namespace {

cv::Mat noise(cv::Size size) {
    cv::Mat light(size, CV_32FC3);
    cv::randu(light, 0, 1);
    return light;
}

bool same_bits(const cv::Mat& one, const cv::Mat& other) {
    return one.size() == other.size() && one.type() == other.type() &&
           std::memcmp(one.data, other.data, one.total() * one.elemSize()) == 0;
}

class FrugalOperatorsTest : public testing::Test {
protected:
    /// Returns the scratch that `work` needs, in pictures in floats.
    double run(Operator* work, const cv::Mat& input, cv::Mat& result) {
        const AsDefault all(memory_);
        result.create(input.size(), input.type());
        std::vector<std::byte> buffer(input.total() * input.elemSize() * 16 + (1 << 16));
        context_.use_scratch(buffer);
        {
            const MatScope scope(memory_, "test");
            work(input, {}, result);
        }
        const auto peak = static_cast<double>(context_.scratch_peak());
        context_.use_scratch({});
        return peak / static_cast<double>(input.total() * input.elemSize());
    }

    Context context_;
    ContextMatAllocator memory_{context_};
};

TEST_F(FrugalOperatorsTest, ResultsAreIdenticalForAnySize) {
    for (const cv::Size size : {cv::Size(1, 1), cv::Size(2, 1), cv::Size(1, 7), cv::Size(83, 61)}) {
        const cv::Mat light = noise(size);
        cv::Mat expected, result;
        denoise(light, {}, expected);
        run(denoise_frugally, light, result);
        EXPECT_TRUE(same_bits(result, expected)) << size;
        boost_detail(light, {}, expected);
        run(boost_detail_frugally, light, result);
        EXPECT_TRUE(same_bits(result, expected)) << size;
    }
}

TEST_F(FrugalOperatorsTest, NeedAQuarterAndTwoFifthsOfTheScratch) {
    const cv::Mat light = noise({256, 256});
    cv::Mat result;
    EXPECT_NEAR(run(denoise, light, result), 12, 0.1);
    EXPECT_NEAR(run(denoise_frugally, light, result), 3, 0.1);
    EXPECT_NEAR(run(boost_detail, light, result), 4.6, 0.1);
    EXPECT_NEAR(run(boost_detail_frugally, light, result), 1.7, 0.1);
}

}  // namespace
}  // namespace tensorpool::photos
