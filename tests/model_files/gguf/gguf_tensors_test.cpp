#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::expect_refused;
using testing::GgufWriter;
using testing::read_model;
using testing::WrittenFile;
namespace ggml = testing::ggml;

/// Returns a file of two tensors, "a" of 32 B and "b" of 8 B.
WrittenFile two_tensors() {
    return GgufWriter().add_tensor("a", ggml::f32, {4, 2}).add_tensor("b", ggml::f16, {4}).write();
}

TEST(GgufTensors, MoreThanFourDimensionsAreRefused) {
    WrittenFile file = two_tensors();
    file.overwrite("tensor 1 'b': dimension count", 5);
    expect_refused(file, "tensor 1 'b': dimension count", "found 5, expected at most 4");
    const WrittenFile four = GgufWriter().add_tensor("a", ggml::i8, {2, 3, 4, 5}).write();
    EXPECT_EQ(read_model(four).tensors()[0].shape.size(), 4U);
}

TEST(GgufTensors, RemovedTypesAreRefusedByName) {
    WrittenFile file = two_tensors();
    file.overwrite("tensor 0 'a': type", 4);
    expect_refused(file, "tensor 0 'a': type",
                   "found 4, expected a type that ggml still has: Q4_2 was removed");
    file.overwrite("tensor 0 'a': type", 31);
    expect_refused(file, "tensor 0 'a': type", "Q4_0_4_4");
}

TEST(GgufTensors, UnknownTypesAreRefused) {
    WrittenFile file = two_tensors();
    for (const std::uint32_t type : {43U, 142U, ~0U}) {
        file.overwrite("tensor 0 'a': type", type);
        expect_refused(file, "tensor 0 'a': type",
                       "found " + std::to_string(type) + ", expected a type of ggml, below 43");
    }
}

TEST(GgufTensors, RowsMustBeWholeBlocks) {
    const WrittenFile file =
        GgufWriter().add_tensor("a", ggml::q8_0, {48, 2}, std::string(102, '\0')).write();
    expect_refused(file, "tensor 0 'a': dimension 0",
                   file.field("tensor 0 'a': dimension 0").offset,
                   "found rows of 48 elements, expected a multiple of 32, a block of Q8_0");
    const WrittenFile scalar = GgufWriter().add_tensor("a", ggml::q8_0, {}).write();
    expect_refused(scalar, "tensor 0 'a': dimension 0", scalar.field("tensor 0 'a': type").offset,
                   "found rows of 1 elements");
}

TEST(GgufTensors, ShapesThatOverflowAreRefused) {
    const std::uint64_t big = std::uint64_t{1} << 32;
    for (const std::vector<std::uint64_t>& shape : {std::vector<std::uint64_t>{big, big},
                                                    {big / 2 * big, 2},
                                                    {~std::uint64_t{0}},
                                                    {big, big / 4},
                                                    {big, big, 0}}) {
        const WrittenFile file = GgufWriter().add_tensor("a", ggml::f32, shape, "").write();
        expect_refused(file, "tensor 0 'a': dimension 0", "whose product passes 2^63 - 1");
    }
}

TEST(GgufTensors, OffsetsMustBeAligned) {
    WrittenFile file = two_tensors();
    file.overwrite("tensor 1 'b': offset", 16);
    expect_refused(file, "tensor 1 'b': offset",
                   "found 16, expected a multiple of the alignment, 32");
}

TEST(GgufTensors, DataMustLieWithinTheFile) {
    WrittenFile file = two_tensors();
    file.overwrite("tensor 1 'b': offset", 64);
    expect_refused(file, "tensor 1 'b': offset",
                   "found 64, where 8 B should be, expected them within the 40 B");
    file.overwrite("tensor 1 'b': offset", ~std::uint64_t{31});
    expect_refused(file, "tensor 1 'b': offset", "found 18446744073709551584");
    WrittenFile cut = two_tensors();
    cut.cut_to(cut.size() - 1);
    expect_refused(cut, "tensor 1 'b': offset", "within the 39 B");
}

TEST(GgufTensors, OverlapsAreRefused) {
    WrittenFile file = two_tensors();
    file.overwrite("tensor 1 'b': offset", 0);
    // Ordered by position, the shorter tensor comes first.
    expect_refused(file, "tensor 0 'a': offset",
                   "found 0, expected at least 8, where tensor 'b' ends");
    WrittenFile long_one =
        GgufWriter().add_tensor("a", ggml::i8, {96}).add_tensor("b", ggml::i8, {1}).write();
    long_one.overwrite("tensor 1 'b': offset", 64);
    expect_refused(long_one, "tensor 1 'b': offset", "found 64, expected at least 96");
}

TEST(GgufTensors, AnyOrderAndHolesAreAccepted) {
    WrittenFile file = GgufWriter()
                           .add_tensor("a", ggml::i8, {32})
                           .add_tensor("b", ggml::i8, {32})
                           .add_tensor("c", ggml::i8, {32})
                           .write();
    file.overwrite("tensor 0 'a': offset", 64);
    file.overwrite("tensor 2 'c': offset", 0);
    const ModelFile model = read_model(file);
    EXPECT_GT(model.tensors()[0].offset, model.tensors()[1].offset);
    EXPECT_GT(model.tensors()[1].offset, model.tensors()[2].offset);
    file.overwrite("tensor count", 3);
    WrittenFile hole = GgufWriter().add_tensor("a", ggml::i8, {1}).write();
    hole.append(std::string(100, 'h'));
    hole.overwrite("tensor 0 'a': offset", 32);
    EXPECT_EQ(read_model(hole).tensors()[0].offset % 32, 0U);
}

TEST(GgufTensors, WithoutElementsHaveNoBytes) {
    const WrittenFile file = GgufWriter()
                                 .add_tensor("none", ggml::f32, {0, 7})
                                 .add_tensor("a", ggml::f32, {1})
                                 .add_tensor("end", ggml::q4_0, {0})
                                 .write();
    const ModelFile model = read_model(file);
    EXPECT_TRUE(model.bytes(model.tensors()[0]).empty());
    EXPECT_EQ(model.tensors()[0].offset, model.tensors()[1].offset);
    // Nothing follows, not even padding for alignment.
    WrittenFile alone = GgufWriter().add_tensor("none", ggml::f32, {0}).write();
    alone.cut_to(alone.field("tensor 0 'none': offset").offset + 8);
    EXPECT_TRUE(read_model(alone).bytes(read_model(alone).tensors()[0]).empty());
}

TEST(GgufTensors, NamesMustBeUniqueUtf8) {
    const WrittenFile duplicates =
        GgufWriter().add_tensor("a", ggml::i8, {1}).add_tensor("a", ggml::i8, {1}).write();
    expect_refused(duplicates, "tensor 1 'a': name text",
                   duplicates.field("tensor 1: name text").offset,
                   "found the name of tensor 0 again");
    const WrittenFile latin = GgufWriter().add_tensor("gr\xfc\xdf", ggml::i8, {1}).write();
    expect_refused(latin, "tensor 0: name text", "found 'gr\\xfc\\xdf', expected UTF-8");
    const WrittenFile greek = GgufWriter().add_tensor("β", ggml::i8, {1}).write();
    EXPECT_NE(read_model(greek).find("β"), nullptr);
}

TEST(GgufTensors, NameLengthIsCheckedAgainstTheFile) {
    WrittenFile file = two_tensors();
    file.overwrite("tensor 0: name length", ~std::uint64_t{0});
    expect_refused(file, "tensor 0: name length", "found 18446744073709551615, expected at most");
}

TEST(GgufTensors, AlignmentComesFromTheMetadata) {
    const WrittenFile file = GgufWriter()
                                 .add("general.alignment", std::uint32_t{256})
                                 .align(256)
                                 .add_tensor("a", ggml::i8, {1})
                                 .add_tensor("b", ggml::i8, {1}, "b")
                                 .write();
    const ModelFile model = read_model(file);
    for (const ModelTensor& tensor : model.tensors()) EXPECT_EQ(tensor.offset % 256, 0U);
    EXPECT_EQ(file.bytes()[model.tensors()[1].offset], 'b');
}

TEST(GgufTensors, AlignmentMustBeAPowerOfTwo) {
    const std::string field = "metadata 0 'general.alignment': value";
    for (const std::uint32_t alignment : {0U, 48U, ~0U}) {
        const WrittenFile file = GgufWriter().add("general.alignment", alignment).write();
        expect_refused(file, field,
                       "found " + std::to_string(alignment) + ", expected a power of two");
    }
    const WrittenFile large = GgufWriter().add("general.alignment", std::uint64_t{1} << 32).write();
    expect_refused(large, field, "expected a power of two below 2^32");
    const WrittenFile text = GgufWriter().add("general.alignment", 32.0F).write();
    expect_refused(text, field, "found another type");
    const WrittenFile largest = GgufWriter().add("general.alignment", 1U << 31).write();
    EXPECT_TRUE(read_model(largest).tensors().empty());
}

}  // namespace
}  // namespace tensorpool
