#include "plan/buffers.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::planning {
namespace {

using enum Field;

/// Returns the error of setting one field; "" if it is accepted.
std::string problem_of(Field field, std::string_view text) {
    BufferFields fields;
    try {
        fields.set(field, text);
    } catch (const FieldProblem& problem) {
        return problem.what;
    }
    return "";
}

TEST(BufferFields, BecomeABuffer) {
    Buffers buffers;
    BufferFields fields;
    fields.set(id, "conv, 1");
    fields.set(lower, "-3");
    fields.set(upper, "4");
    fields.set(size, "100");
    fields.set(alignment, "16");
    fields.set(offset, "32");
    fields.move_to(buffers);
    EXPECT_EQ(buffers.ids, std::vector<std::string>{"conv, 1"});
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{-3, 4, 100, 16}}));
    EXPECT_EQ(buffers.offsets, std::vector<std::uint64_t>{32});
    EXPECT_FALSE(fields.has(id)) << "the next one begins";
}

TEST(BufferFields, WithoutIdsBuffersAreNumbered) {
    Buffers buffers;
    for (int i = 0; i < 2; ++i) {
        BufferFields fields;
        fields.set(lower, "0");
        fields.set(upper, "1");
        fields.set(size, "0");
        fields.move_to(buffers);
    }
    EXPECT_EQ(buffers.ids, (std::vector<std::string>{"0", "1"}));
    EXPECT_EQ(buffers.lifetimes[0].alignment, 1u);
    EXPECT_TRUE(buffers.offsets.empty());
}

TEST(BufferFields, ReportInvalidValues) {
    EXPECT_EQ(problem_of(size, "12"), "");
    EXPECT_EQ(problem_of(size, "-1"),
              "found \"-1\", expected bytes: a whole number from 0 to 2^62 - 1");
    EXPECT_EQ(problem_of(size, ""),
              "found nothing, expected bytes: a whole number from 0 to 2^62 - 1");
    EXPECT_NE(problem_of(size, "1.5"), "");
    EXPECT_NE(problem_of(size, "4611686018427387904"), "");
    EXPECT_EQ(problem_of(size, "4611686018427387903"), "");
    EXPECT_EQ(problem_of(lower, "0x10"),
              "found \"0x10\", expected a time: a whole number from -2^62 to 2^62");
    EXPECT_NE(problem_of(upper, "99999999999999999999"), "");
    EXPECT_NE(problem_of(upper, "9223372036854775807"), "");
    EXPECT_EQ(problem_of(alignment, "48"),
              "found \"48\", expected an alignment in bytes: a power of two");
    EXPECT_NE(problem_of(alignment, "0"), "");
}

TEST(BufferFields, LongTextsAreCutAndEscaped) {
    const std::string problem = problem_of(size, std::string(1000, '\x1b'));
    EXPECT_LT(problem.size(), 200u);
    EXPECT_EQ(problem.find('\x1b'), std::string::npos);
}

TEST(BufferFields, RejectARepeatedField) {
    BufferFields fields;
    fields.set(size, "1");
    EXPECT_THROW(fields.set(size, "1"), FieldProblem);
}

TEST(BufferFields, NameTheMissingField) {
    Buffers buffers;
    BufferFields fields;
    fields.set(lower, "1");
    fields.set(size, "1");
    try {
        fields.move_to(buffers);
        FAIL();
    } catch (const FieldProblem& problem) {
        EXPECT_EQ(problem.field, upper);
    }
}

TEST(BufferFields, RejectAnEmptyLifetime) {
    Buffers buffers;
    BufferFields fields;
    fields.set(lower, "7");
    fields.set(upper, "7");
    fields.set(size, "1");
    try {
        fields.move_to(buffers);
        FAIL();
    } catch (const FieldProblem& problem) {
        EXPECT_EQ(problem.what, "found 7, expected a time above lower, 7");
    }
}

TEST(Fields, AreFoundByTheirNames) {
    for (const Field field : {id, lower, upper, size, alignment, offset}) {
        EXPECT_EQ(field_of(to_string(field)), field);
    }
    EXPECT_EQ(field_of("Size"), std::nullopt);
    EXPECT_EQ(field_of(""), std::nullopt);
}

}  // namespace
}  // namespace tensorpool::command::planning
