#include <cstdint>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <tensorpool/memory_plan.hpp>

#include "plan/planner/instances.hpp"

namespace {

using planner_tests::Lifetimes;
using tensorpool::MemoryPlan;
using tensorpool::validate;

MemoryPlan plan_of(std::vector<std::uint64_t> offsets, std::uint64_t peak_bytes) {
    MemoryPlan plan;
    plan.offsets = std::move(offsets);
    plan.peak_bytes = peak_bytes;
    return plan;
}

std::string refusal(const Lifetimes& lifetimes, const MemoryPlan& plan) {
    try {
        validate(lifetimes, plan);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(ValidatePlan, AcceptsAnEmptyPlan) {
    EXPECT_EQ(refusal({}, {}), "");
}

TEST(ValidatePlan, AcceptsAdjacentBuffers) {
    EXPECT_EQ(refusal({{0, 7, 64}, {4, 9, 64}}, plan_of({0, 64}, 128)), "");
}

TEST(ValidatePlan, AcceptsSharedBytesAtDifferentTimes) {
    EXPECT_EQ(refusal({{4, 9, 64}, {0, 4, 64}}, plan_of({0, 0}, 64)), "");
}

TEST(ValidatePlan, NamesBothOverlappingBuffersAndTheInterval) {
    const Lifetimes lifetimes = {{0, 7, 64}, {4, 9, 64}};
    EXPECT_EQ(refusal(lifetimes, plan_of({0, 32}, 96)),
              "tensorpool: plan: buffer 0 [0, 64) and buffer 1 [32, 96) overlap while both are "
              "alive in [4, 7)");
    EXPECT_EQ(refusal(lifetimes, plan_of({32, 0}, 96)),
              "tensorpool: plan: buffer 0 [32, 96) and buffer 1 [0, 64) overlap while both are "
              "alive in [4, 7)");
}

TEST(ValidatePlan, FindsBuffersAtTheSameOffset) {
    EXPECT_EQ(refusal({{0, 7, 64}, {4, 9, 64}}, plan_of({8, 8}, 96)),
              "tensorpool: plan: buffer 0 [8, 72) and buffer 1 [8, 72) overlap while both are "
              "alive in [4, 7)");
}

TEST(ValidatePlan, FindsABufferWithinAnother) {
    EXPECT_EQ(refusal({{0, 7, 64}, {4, 9, 8}, {2, 3, 8}}, plan_of({0, 24, 64}, 96)),
              "tensorpool: plan: buffer 0 [0, 64) and buffer 1 [24, 32) overlap while both are "
              "alive in [4, 7)");
}

TEST(ValidatePlan, AcceptsABufferOfZeroBytesAnywhere) {
    EXPECT_EQ(refusal({{0, 7, 64}, {4, 9, 0}}, plan_of({0, 32}, 64)), "");
}

TEST(ValidatePlan, ChecksTheNumberOfOffsets) {
    EXPECT_EQ(refusal({{0, 7, 64}}, plan_of({}, 64)),
              "tensorpool: plan: 0 offsets; expected 1, one for each buffer");
}

TEST(ValidatePlan, ChecksAlignments) {
    EXPECT_EQ(refusal({{0, 7, 64, 16}}, plan_of({8}, 96)),
              "tensorpool: plan: buffer 0 lies at offset 8; expected a multiple of its alignment, "
              "16 B");
}

TEST(ValidatePlan, ChecksThePeak) {
    EXPECT_EQ(refusal({{0, 7, 64}}, plan_of({1}, 64)),
              "tensorpool: plan: buffer 0 of 64 B lies at offset 1; expected its end within the "
              "peak, 64 B");
    EXPECT_EQ(refusal({{0, 7, 64}}, plan_of({UINT64_MAX}, 64)),
              "tensorpool: plan: buffer 0 of 64 B lies at offset 18446744073709551615; expected "
              "its end within the peak, 64 B");
}

TEST(ValidatePlan, ChecksLifetimesToo) {
    EXPECT_EQ(refusal({{7, 7, 64}}, plan_of({0}, 64)),
              "tensorpool: plan: buffer 0 is alive in [7, 7); expected an end after the beginning");
}

TEST(ValidatePlan, AgreesWithAPairwiseCheck) {
    planner_tests::Generator generator(11);
    int valid = 0;
    for (int i = 0; i < 2000; ++i) {
        const Lifetimes lifetimes = planner_tests::random_lifetimes(generator, 5, 12, 6);
        MemoryPlan plan;
        for (const auto& one : lifetimes) {
            plan.offsets.push_back(
                static_cast<std::uint64_t>(planner_tests::draw(generator, 0, 20)));
            plan.peak_bytes = std::max(plan.peak_bytes, plan.offsets.back() + one.bytes);
        }
        const bool fine = planner_tests::fault_of(lifetimes, plan).empty();
        EXPECT_EQ(refusal(lifetimes, plan).empty(), fine);
        valid += fine ? 1 : 0;
    }
    EXPECT_GT(valid, 200);
    EXPECT_LT(valid, 1800);
}

}  // namespace
