#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::read_model;
using testing::SafetensorsWriter;
using testing::WrittenFile;

const std::string tensor_a = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";

/// Returns a file with this header and two bytes of data.
WrittenFile with_header(const std::string& header) {
    return SafetensorsWriter::write(header, "xy");
}

class SafetensorsHeader : public ::testing::Test {
protected:
    void SetUp() override {
        if (!TENSORPOOL_TESTS_JSON) GTEST_SKIP() << "this build has no JSON library";
    }
    /// Expects an error at the position of `mark` in the header.
    static void expect_refused(const std::string& header, const std::string& field,
                               const std::string& mark, const std::string& text) {
        SCOPED_TRACE(header);
        testing::expect_refused(with_header(header), field, 8 + header.find(mark), text);
    }
};

TEST_F(SafetensorsHeader, AcceptsAnyFieldOrderAndSpaces) {
    const WrittenFile file = with_header(
        "{ \"a\" : {\"data_offsets\" : [ 0 , 2 ],\n\"shape\":[2, 1],\t\"dtype\":\"U8\"} }  ");
    const ModelFile model = read_model(file);
    ASSERT_EQ(model.tensors().size(), 1U);
    EXPECT_EQ(model.tensors()[0].shape.size(), 2U);
}

TEST_F(SafetensorsHeader, EscapedStringsAreDecoded) {
    const WrittenFile file =
        with_header(R"({"__metadata__":{"k\n":"\u00e9\"","plain":"é"},)"
                    R"("\u0061\/b":{"dtype":"\u00558","shape":[2],"data_offsets":[0,2]}})");
    ModelFile model = read_model(file);
    const ModelFile moved = std::move(model);
    ASSERT_EQ(moved.tensors().size(), 1U);
    EXPECT_EQ(moved.tensors()[0].name, "a/b");
    EXPECT_EQ(moved.find("a/b"), &moved.tensors()[0]);
    EXPECT_EQ(std::get<std::string_view>(*moved.find_metadata("k\n")), "é\"");
    EXPECT_EQ(std::get<std::string_view>(*moved.find_metadata("plain")), "é");
}

TEST_F(SafetensorsHeader, ErrorsShowNoBytesOfTheFileUnescaped) {
    const std::string hostile =
        "{\"a parsing '; last read: 'b'; \x1B[2J\x7F\xC2\x9B; expected '}'; \xFF";
    const std::string numbers = "{\"a\":" + std::string(5000, '9') + "e999}";
    for (const std::string& header : {hostile, hostile + "'", numbers}) {
        const auto error = testing::error_of(with_header(header));
        ASSERT_TRUE(error);
        const std::string text = error->what();
        EXPECT_LT(text.size(), 400U) << text;
        for (const char c : {'\x1B', '\x7F', '\x9B', '\xFF'}) {
            EXPECT_EQ(text.find(c), std::string::npos) << text;
        }
    }
}

TEST_F(SafetensorsHeader, UnknownFieldsAreSkipped) {
    const WrittenFile file = with_header(
        R"({"a":{"x":{"y":[1,{"z":null}],"dtype":"no"},"dtype":"U8","u":1.5,"shape":[2],)"
        R"("v":[],"w":"text","data_offsets":[0,2],"t":true,"n":-1}})");
    EXPECT_EQ(read_model(file).tensors()[0].type.name, "U8");
}

TEST_F(SafetensorsHeader, NestingIsLimited) {
    const auto header = [](int depth) {
        return R"({"a":{"x":)" + std::string(depth, '[') + std::string(depth, ']') + "," +
               tensor_a.substr(5) + "}";
    };
    EXPECT_FALSE(testing::error_of(with_header(header(32))));
    testing::expect_refused(with_header(header(33)), "tensor 0 'a': header", 8 + 10 + 32,
                            "nested deeper than 32");
}

TEST_F(SafetensorsHeader, ValuesOfWrongTypesAreRefused) {
    expect_refused(R"({"a":7})", "tensor 0 'a': header", "}", "found a number, expected an object");
    expect_refused(R"({"a":{"dtype":7,"shape":[]}})", "tensor 0 'a': value", ",",
                   "found a number, expected a string");
    expect_refused(R"({"a":{"shape":null}})", "tensor 0 'a': shape", "l}",
                   "found null, expected an array");
    expect_refused(R"({"a":{"shape":["2"]}})", "tensor 0 'a': shape", "\"]",
                   "found a string, expected a whole number");
    expect_refused(R"({"a":{"shape":[[]]}})", "tensor 0 'a': shape", "[]",
                   "found an array, expected a whole number");
    expect_refused(R"({"a":{"shape":[-1]}})", "tensor 0 'a': shape", "]",
                   "found a negative number, expected a whole number");
    expect_refused(R"({"a":{"shape":[1.0]}})", "tensor 0 'a': shape", "]", "with a fraction");
    expect_refused(R"({"a":{"shape":[18446744073709551616]}})", "tensor 0 'a': shape", "]",
                   "or too large");
    expect_refused(R"({"a":{"data_offsets":{}}})", "tensor 0 'a': data_offsets", "{}",
                   "found an object, expected an array");
    expect_refused(R"({"__metadata__":null})", "header", "l}", "found null, expected an object");
    expect_refused(R"({"__metadata__":{"k":{}}})", "metadata 0 'k': value", "{}",
                   "found an object, expected a string");
}

TEST_F(SafetensorsHeader, RequiresEachFieldOnce) {
    expect_refused(R"({"a":{"shape":[2],"data_offsets":[0,2]}})", "tensor 0 'a': dtype", "a",
                   "found none, expected one");
    expect_refused(R"({"a":{"dtype":"U8","data_offsets":[0,2]}})", "tensor 0 'a': shape", "a",
                   "found none");
    expect_refused(R"({"a":{"dtype":"U8","shape":[2]}})", "tensor 0 'a': data_offsets", "a",
                   "found none");
    expect_refused(R"({"a":{"dtype":"U8","shape":[2],"shape":[2]}})", "tensor 0 'a': shape",
                   "\":[2]}}", "found it again");
    expect_refused(R"({"__metadata__":{},"__metadata__":{}})", "header", "\":{}}",
                   "found __metadata__ again");
    expect_refused("{" + tensor_a + "," + R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                   "tensor 1 'a': name", R"(a":{"dtype":"U8","shape":[0])",
                   "found the name of tensor 0 again");
    expect_refused(R"({"__metadata__":{"k":"1","k":"2"},)" + tensor_a + "}", "metadata 1 'k': key",
                   R"(k":"2")", "found the key of metadata 0 again");
}

TEST_F(SafetensorsHeader, RequiresTwoOffsets) {
    expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0]}})",
                   "tensor 0 'a': data_offsets", "]}}", "found fewer than two");
    expect_refused(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2,4]}})",
                   "tensor 0 'a': data_offsets", "]}}", "found a third");
}

TEST_F(SafetensorsHeader, AtMost64Dimensions) {
    const auto header = [](int dimensions) {
        std::string shape = "2";
        for (int i = 1; i < dimensions; ++i) shape += ",1";
        return R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,2]}})";
    };
    EXPECT_EQ(read_model(with_header(header(64))).tensors()[0].shape.size(), 64U);
    expect_refused(header(65), "tensor 0 'a': shape", "],", "more than 64 dimensions");
}

TEST_F(SafetensorsHeader, InvalidJsonIsRefused) {
    testing::expect_refused(with_header("{\"a\""), "header", 16,
                            "expected JSON: unexpected end of input; expected ':'");
    testing::expect_refused(with_header("{\"a\":x}"), "header", 8 + 5,
                            "found '\"a\":x', expected JSON");
}

TEST_F(SafetensorsHeader, TrailingTextIsRefused) {
    const std::string whole = "{" + tensor_a + "}";
    for (const std::string behind : {"x", "{}", ","}) {
        const auto error = testing::error_of(with_header(whole + behind));
        ASSERT_TRUE(error) << behind;
        EXPECT_EQ(error->field(), "header");
        EXPECT_EQ(error->offset(), 8 + whole.size()) << error->what();
    }
    const std::string zero = whole + std::string(1, '\0') + "x";
    testing::expect_refused(with_header(zero), "header", 8 + whole.size(), "found a byte of 0");
}

TEST_F(SafetensorsHeader, InvalidUtf8IsRefused) {
    const auto error = testing::error_of(with_header("{\"\xff\":{}}"));
    ASSERT_TRUE(error);
    EXPECT_EQ(error->offset(), 10U);
    EXPECT_NE(std::string(error->what()).find("ill-formed UTF-8"), std::string::npos)
        << error->what();
}

}  // namespace
}  // namespace tensorpool
