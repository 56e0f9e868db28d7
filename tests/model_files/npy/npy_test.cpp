#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::expect_refused;
using testing::npy_file;
using testing::npy_header;
using testing::read_model;
using testing::WrittenFile;
using Shape = std::vector<std::uint64_t>;

Shape shape_of(const ModelTensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.end()};
}

TEST(Npy, ArrayIsOneTensorNamedAfterTheFile) {
    const WrittenFile file = npy_file(npy_header("<f4", "(2, 3)"), std::string(24, 'a'));
    for (const char* const name : {"w.npy", "/models/w.npy", "C:\\models\\w.npy", "w"}) {
        const ModelFile model = read_model(file, name);
        EXPECT_EQ(model.format(), ModelFormat::npy);
        EXPECT_EQ(model.version(), 1U);
        EXPECT_EQ(model.name(), name);
        ASSERT_EQ(model.tensors().size(), 1U);
        const ModelTensor& tensor = model.tensors()[0];
        EXPECT_EQ(tensor.name, "w");
        EXPECT_EQ(tensor.type.name, "<f4");
        EXPECT_EQ(shape_of(tensor), (Shape{2, 3}));
        EXPECT_FALSE(tensor.column_major);
        EXPECT_EQ(tensor.offset, 128U);
        EXPECT_EQ(tensor.bytes, 24U);
        EXPECT_EQ(model.bytes(tensor).data(), file.view().data() + 128);
        EXPECT_EQ(model.find("w"), &tensor);
    }
}

TEST(Npy, TensorIsNamedArrayIfTheFileNameIsNotUtf8) {
    const WrittenFile file = npy_file(npy_header("|u1", "()"), "a");
    EXPECT_EQ(read_model(file, "\xff.npy").tensors()[0].name, "array");
}

TEST(Npy, LaterVersionsHaveLongerHeaders) {
    for (const unsigned version : {2U, 3U}) {
        const WrittenFile file = npy_file(npy_header("|i1", "(3,)"), "abc", version);
        const ModelFile model = read_model(file);
        EXPECT_EQ(model.version(), version);
        EXPECT_EQ(shape_of(model.tensors()[0]), (Shape{3}));
    }
    WrittenFile file = npy_file(npy_header("|i1", "(3,)"), "abc");
    file.overwrite("version", 4);
    expect_refused(file, "version", "found 4.0, expected 1.0, 2.0 or 3.0");
    file.overwrite("version", 0x0101);
    expect_refused(file, "version", "found 1.1");
}

TEST(Npy, ColumnMajorArraysAreMarked) {
    const WrittenFile file = npy_file(npy_header("|u1", "(2, 3)", true), "abcdef");
    EXPECT_TRUE(read_model(file).tensors()[0].column_major);
}

TEST(Npy, AcceptsScalarsAndEmptyArrays) {
    const WrittenFile scalar = npy_file(npy_header("<f8", "()"), "12345678");
    EXPECT_TRUE(read_model(scalar).tensors()[0].shape.empty());
    const WrittenFile empty = npy_file(npy_header("<f8", "(3, 0)"), "");
    const ModelFile model = read_model(empty);
    EXPECT_EQ(model.tensors()[0].bytes, 0U);
    EXPECT_TRUE(model.bytes(model.tensors()[0]).empty());
}

TEST(Npy, DataSizeMustMatchShapeAndType) {
    const std::string header = npy_header("<i2", "(2, 2)");
    expect_refused(npy_file(header, "1234567"), "data",
                   "found 7 B to the end, expected 8 B by shape and type");
    expect_refused(npy_file(header, "123456789"), "data",
                   "expected 8 B by shape and type and no second");
}

TEST(Npy, ShapesThatOverflowAreRefused) {
    for (const char* const shape : {"(4611686018427387904, 4)", "(2305843009213693952,)",
                                    "(18446744073709551615,)", "(4294967296, 4294967296, 0)"}) {
        const WrittenFile file = npy_file(npy_header("<f8", shape), "");
        const std::uint64_t at = file.bytes().find('(');
        expect_refused(file, "header", at, "2^63 - 1");
    }
}

TEST(Npy, HeaderLengthBeyondTheEndIsRefused) {
    WrittenFile file = npy_file(npy_header("|u1", "()"), "a");
    file.overwrite("header length", 0xffff);
    expect_refused(file, "header", 10, "found 119 B to the end, expected 65535 B");
}

TEST(Npy, TruncatedFileIsRefused) {
    const WrittenFile whole = npy_file(npy_header("<f4", "(2,)"), "12345678");
    for (std::uint64_t bytes = 0; bytes < whole.size(); ++bytes) {
        WrittenFile file = whole;
        file.cut_to(bytes);
        EXPECT_TRUE(testing::error_of(file)) << bytes;
    }
    EXPECT_FALSE(testing::error_of(whole));
}

}  // namespace
}  // namespace tensorpool
