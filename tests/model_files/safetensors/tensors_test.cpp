#include "models/safetensors/tensors.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace tensorpool::files {
namespace {

constexpr std::uint64_t data_begin = 100;

SafetensorsTensor tensor(std::string_view name, std::string_view type,
                         std::vector<std::uint64_t> shape, std::uint64_t begin, std::uint64_t end) {
    return {.name = name,
            .name_offset = 10,
            .type = type,
            .type_offset = 20,
            .shape = {std::move(shape), 30},
            .data_offsets = {{begin, end}, 40}};
}

/// Checks tensors of a file with a given number of data bytes.
class SafetensorsTensorsTest : public ::testing::Test {
protected:
    void take(const std::vector<SafetensorsTensor>& tensors, std::uint64_t data_bytes) {
        contents_ = {};
        contents_.name = "model";
        file_.resize(data_begin + data_bytes);
        contents_.bytes = file_;
        SafetensorsTensors checked(contents_, data_begin);
        for (const SafetensorsTensor& one : tensors) checked.add(one);
        checked.finish();
    }
    void expect_refused(const std::vector<SafetensorsTensor>& tensors, std::uint64_t data_bytes,
                        const std::string& field, std::uint64_t offset, const std::string& text) {
        try {
            take(tensors, data_bytes);
            ADD_FAILURE() << "was accepted; expected: " << text;
        } catch (const ModelFileError& error) {
            EXPECT_EQ(error.field(), field) << error.what();
            EXPECT_EQ(error.offset(), offset) << error.what();
            EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
        }
    }

    std::vector<std::byte> file_;
    ModelContents contents_;
};

TEST_F(SafetensorsTensorsTest, MayTileTheDataInAnyOrder) {
    take({tensor("b", "F32", {2}, 4, 12), tensor("empty", "F32", {0, 5}, 4, 4),
          tensor("a", "U8", {4}, 0, 4)},
         12);
    ASSERT_EQ(contents_.tensors.size(), 3U);
    EXPECT_EQ(contents_.tensors[0].name, "b");
    EXPECT_EQ(contents_.tensors[0].offset, data_begin + 4);
    EXPECT_EQ(contents_.tensors[0].bytes, 8U);
    EXPECT_EQ(contents_.tensors[2].offset, data_begin);
}

TEST_F(SafetensorsTensorsTest, HolesAreRefused) {
    expect_refused({tensor("a", "U8", {4}, 0, 4), tensor("b", "U8", {2}, 5, 7)}, 7,
                   "tensor 1 'b': data_offsets", 40, "found a beginning of 5, expected 4");
    expect_refused({tensor("a", "U8", {4}, 1, 5)}, 5, "tensor 0 'a': data_offsets", 40,
                   "found a beginning of 1, expected 0");
    expect_refused({tensor("a", "U8", {4}, 0, 4)}, 6, "data", data_begin + 4,
                   "found 2 B behind the last tensor, expected none");
    expect_refused({}, 1, "data", data_begin, "found 1 B behind the last tensor");
}

TEST_F(SafetensorsTensorsTest, OverlapsAreRefused) {
    expect_refused({tensor("a", "U8", {4}, 0, 4), tensor("b", "U8", {4}, 3, 7)}, 7,
                   "tensor 1 'b': data_offsets", 40, "neither holes nor overlaps");
    expect_refused({tensor("a", "U8", {4}, 0, 4), tensor("b", "U8", {4}, 0, 4)}, 4,
                   "tensor 1 'b': data_offsets", 40, "found a beginning of 0, expected 4");
}

TEST_F(SafetensorsTensorsTest, OffsetsMustMatchDataShapeAndType) {
    expect_refused({tensor("a", "U8", {4}, 4, 0)}, 4, "tensor 0 'a': data_offsets", 40,
                   "found 4 to 0, expected a beginning at or before the end");
    expect_refused({tensor("a", "U8", {4}, 1, 5)}, 4, "tensor 0 'a': data_offsets", 40,
                   "expected an end within the 4 B of data in the file");
    expect_refused({tensor("a", "F32", {2}, 0, 4)}, 4, "tensor 0 'a': data_offsets", 40,
                   "found 0 to 4, expected 8 B by shape and dtype");
}

TEST_F(SafetensorsTensorsTest, ShapesMustNotOverflow) {
    const std::uint64_t half = std::uint64_t{1} << 63;
    expect_refused({tensor("a", "U8", {half}, 0, 0)}, 0, "tensor 0 'a': shape", 30, "2^63 - 1");
    expect_refused({tensor("a", "F64", {half / 4}, 0, 0)}, 0, "tensor 0 'a': shape", 30,
                   "in bytes");
    expect_refused({tensor("a", "U8", {half, 2, 0}, 0, 0)}, 0, "tensor 0 'a': shape", 30, "2^63");
}

TEST_F(SafetensorsTensorsTest, ElementsBelowAByteMustFillWholeBytes) {
    take({tensor("a", "F4", {2, 3}, 0, 3), tensor("b", "F6_E2M3", {4}, 3, 6)}, 6);
    expect_refused({tensor("a", "F4", {3}, 0, 2)}, 2, "tensor 0 'a': shape", 30,
                   "found 3 elements, expected a multiple of 2");
    contents_ = {};
    expect_refused(
        {tensor("a", "F6_E3M2", {6}, 0, 5)}, 5, "tensor 0 'a': shape", 30,
        "found 6 elements, expected a multiple of 4, which fill whole bytes with F6_E3M2");
}

TEST_F(SafetensorsTensorsTest, TypesMustBeKnown) {
    expect_refused({tensor("a", "F7", {1}, 0, 1)}, 1, "tensor 0 'a': dtype", 20,
                   "found 'F7', expected a type of the format");
}

TEST_F(SafetensorsTensorsTest, NamesMustBeUnique) {
    expect_refused({tensor("a", "U8", {1}, 0, 1), tensor("a", "U8", {1}, 1, 2)}, 2,
                   "tensor 1 'a': name", 10, "found the name of tensor 0 again");
}

}  // namespace
}  // namespace tensorpool::files
