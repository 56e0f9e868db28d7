#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <stdexcept>

#include "plan/plans.hpp"

namespace tensorpool::planned {
namespace {

std::string written(const LearnedPlan& plan) {
    std::ostringstream out;
    write_plan(out, plan);
    return out.str();
}

LearnedPlan read(const std::string& bytes) {
    std::istringstream in(bytes);
    return read_plan(in, "file");
}

std::string problem_of(const std::string& bytes) {
    try {
        read(bytes);
        return "none";
    } catch (const std::runtime_error& error) {
        return error.what();
    }
}

/// Returns the file with its last 8 bytes replaced by the checksum of all bytes before them.
std::string with_checksum(std::string bytes) {
    Checksum checksum;
    checksum.add(bytes.data(), bytes.size() - 8);
    for (std::size_t i = 0; i < 8; ++i) {
        bytes[bytes.size() - 8 + i] = static_cast<char>(checksum.value() >> (8 * i));
    }
    return bytes;
}

/// Returns the file of the small plan, with another number of `bytes` bytes at position `at`.
std::string changed(std::size_t at, std::uint64_t value, unsigned bytes) {
    std::string file = written(testing::small_plan());
    for (unsigned i = 0; i < bytes; ++i) file[at + i] = static_cast<char>(value >> (8 * i));
    return with_checksum(file);
}

constexpr std::size_t records = 56;

TEST(ReadPlan, ReturnsThePlanThatWasWritten) {
    LearnedPlan plan = testing::small_plan();
    plan.lower_bound_bytes = 500;
    plan.pool_peak_bytes = 3000;
    const LearnedPlan back = read(written(plan));
    EXPECT_EQ(back.requests, plan.requests);
    EXPECT_EQ(back.offsets, plan.offsets);
    EXPECT_EQ(back.peak_bytes, plan.peak_bytes);
    EXPECT_EQ(back.lower_bound_bytes, 500);
    EXPECT_EQ(back.pool_peak_bytes, 3000);
}

TEST(ReadPlan, LeavesTheRestOfTheStreamUnread) {
    std::istringstream in(written(testing::small_plan()) + "more");
    read_plan(in, "stream");
    std::string more;
    in >> more;
    EXPECT_EQ(more, "more");
}

TEST(ReadPlan, RejectsTruncatedFiles) {
    const std::string whole = written(testing::small_plan());
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        EXPECT_NE(problem_of(whole.substr(0, bytes)).find("the file ends"), std::string::npos)
            << bytes;
    }
}

TEST(ReadPlan, RejectsAnyChangedByte) {
    const std::string whole = written(testing::small_plan());
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string bytes = whole;
        bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
        EXPECT_NE(problem_of(bytes), "none") << at;
    }
}

TEST(ReadPlan, MessagesNameFileFieldPositionAndExpectation) {
    EXPECT_EQ(problem_of("tp-plan!............"),
              "tensorpool: plan file 'file': magic at byte 0: this is not a plan file");
    EXPECT_EQ(problem_of(changed(8, 2, 4)),
              "tensorpool: plan file 'file': version at byte 8: 2; expected 1");
    EXPECT_EQ(problem_of(changed(records, 100, 8)),
              "tensorpool: plan file 'file': request 0: bytes at byte 56: 100; expected a multiple "
              "of 64 from 64 to 274877902848");
}

TEST(ReadPlan, RejectsInvalidValues) {
    const auto expect_rejected = [](std::size_t at, std::uint64_t value, unsigned bytes,
                                    const char* field) {
        const std::string problem = problem_of(changed(at, value, bytes));
        EXPECT_NE(problem.find(field), std::string::npos) << problem;
    };
    expect_rejected(12, 33, 4, "bytes of a record");
    expect_rejected(16, 0, 8, "requests");
    expect_rejected(16, std::uint64_t{1} << 60, 8, "requests");
    expect_rejected(24, std::uint64_t{1} << 50, 8, "bytes of the plan");
    expect_rejected(24, 64, 8, "request 0: offset");
    expect_rejected(32, 513, 8, "lower bound");
    expect_rejected(48, 1, 8, "checksum of the sequence");
    expect_rejected(records, 0, 8, "request 0: bytes");
    expect_rejected(records, UINT64_MAX - 63, 8, "request 0: bytes");
    expect_rejected(records + 8, 512, 8, "request 0: offset");
    expect_rejected(records + 8, UINT64_MAX - 1, 8, "request 0: offset");
    expect_rejected(records + 8, UINT64_MAX, 8, "request 0: end");
    expect_rejected(records + 16, UINT64_MAX, 8, "request 0: bytes of the pool's block");
    expect_rejected(records + 24, 0, 4, "request 0: end");
    expect_rejected(records + 24, 6, 4, "request 0: end");
    expect_rejected(records + 24, UINT32_MAX, 4, "request 0: end");
    expect_rejected(records + 28, 32, 4, "request 0: alignment");
    expect_rejected(records + 28, 96, 4, "request 0: alignment");
    expect_rejected(records + 28, std::uint32_t{1} << 31, 4, "request 0: alignment");
}

TEST(ReadPlan, RejectsOverlapAndMisalignment) {
    EXPECT_NE(problem_of(changed(records + 32 + 8, 192, 8)).find("overlap"), std::string::npos);
    EXPECT_NE(problem_of(changed(records + 96 + 8, 257, 8)).find("align"), std::string::npos);
}

TEST(ReadPlan, RejectsAPeakAboveTheLastBuffer) {
    EXPECT_EQ(problem_of(changed(24, 1024, 8)),
              "tensorpool: plan file 'file': bytes of the plan: 1024; expected 512, where the last "
              "buffer ends");
}

// Every file that is accepted must hold a valid plan.
TEST(ReadPlan, RandomChangesNeverYieldAnInvalidPlan) {
    std::mt19937 random(1);
    const std::string whole = written(testing::small_plan());
    for (int i = 0; i < 20'000; ++i) {
        std::string bytes = whole;
        for (auto changes = 1 + random() % 3; changes != 0; --changes) {
            bytes[8 + random() % (bytes.size() - 16)] = static_cast<char>(random());
        }
        try {
            const LearnedPlan plan = read(with_checksum(bytes));
            validate(lifetimes_of(plan.requests), memory_plan_of(plan));
        } catch (const std::runtime_error&) {
        }
    }
}

}  // namespace
}  // namespace tensorpool::planned
