#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <variant>
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
namespace gguf = testing::gguf;

template <class Kind, class Value>
void expect_value(Value value, Kind expected) {
    const WrittenFile file = GgufWriter().add("k", value).write();
    const ModelFile model = read_model(file);
    ASSERT_EQ(model.metadata().size(), 1U);
    EXPECT_EQ(model.metadata()[0].key, "k");
    ASSERT_TRUE(std::holds_alternative<Kind>(model.metadata()[0].value));
    EXPECT_EQ(std::get<Kind>(model.metadata()[0].value), expected);
}

TEST(GgufMetadata, ValuesOfAllTypes) {
    expect_value<std::uint64_t>(std::uint8_t{200}, 200);
    expect_value<std::int64_t>(std::int8_t{-100}, -100);
    expect_value<std::uint64_t>(std::uint16_t{60000}, 60000);
    expect_value<std::int64_t>(std::int16_t{-30000}, -30000);
    expect_value<std::uint64_t>(std::uint32_t{4000000000}, 4000000000);
    expect_value<std::int64_t>(std::int32_t{-2000000000}, -2000000000);
    expect_value<std::uint64_t>(~std::uint64_t{0}, ~std::uint64_t{0});
    expect_value<std::int64_t>(std::numeric_limits<std::int64_t>::min(),
                               std::numeric_limits<std::int64_t>::min());
    expect_value<double>(1.5F, 1.5);
    expect_value<double>(0.1, 0.1);
    expect_value<bool>(true, true);
    expect_value<bool>(false, false);
    expect_value<std::string_view>("llama", "llama");
    expect_value<std::string_view>("", "");
}

MetadataArray array_of(const ModelFile& model) {
    return std::get<MetadataArray>(model.metadata()[0].value);
}

TEST(GgufMetadata, ArraysAreViews) {
    const WrittenFile numbers = GgufWriter().add("k", std::vector<std::int32_t>{1, -2, 3}).write();
    const ModelFile model = read_model(numbers);
    const MetadataArray array = array_of(model);
    EXPECT_EQ(array.type, "i32");
    EXPECT_EQ(array.count, 3U);
    EXPECT_EQ(array.bytes.size(), 12U);
    EXPECT_EQ(array.bytes.data() + 12, numbers.view().data() + numbers.size());

    const WrittenFile texts =
        GgufWriter().add("k", std::vector<std::string>{"a", "", "ccc"}).write();
    const ModelFile of_texts = read_model(texts);
    EXPECT_EQ(array_of(of_texts).type, "string");
    EXPECT_EQ(array_of(of_texts).count, 3U);
    EXPECT_EQ(array_of(of_texts).bytes.size(), 3U * 8 + 4);
}

TEST(GgufMetadata, TypesOfElementsHaveNames) {
    const std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
    for (std::uint32_t type = 0; type < std::size(names); ++type) {
        const WrittenFile file = GgufWriter()
                                     .add_value("k", gguf::array,
                                                [=](WrittenFile& to, const std::string& at) {
                                                    GgufWriter::head(to, at, type, 0);
                                                })
                                     .write();
        const ModelFile model = read_model(file);
        EXPECT_EQ(array_of(model).type, names[type]);
    }
}

TEST(GgufMetadata, EmptyArrays) {
    const WrittenFile file = GgufWriter().add("k", std::vector<std::string>{}).write();
    const ModelFile model = read_model(file);
    EXPECT_EQ(array_of(model).count, 0U);
    EXPECT_TRUE(array_of(model).bytes.empty());
}

/// Builds `depth` nested arrays. The innermost one has two bytes.
GgufWriter nested(int depth) {
    return GgufWriter().add_value("k", gguf::array, [=](WrittenFile& to, const std::string& at) {
        for (int i = 1; i < depth; ++i) {
            GgufWriter::head(to, at + std::to_string(i) + " ", gguf::array, 1);
        }
        GgufWriter::head(to, at, gguf::u8, 2);
        to.append("xy");
    });
}

TEST(GgufMetadata, ArrayNestingIsLimited) {
    const WrittenFile file = nested(2).write();
    const ModelFile model = read_model(file);
    EXPECT_EQ(array_of(model).type, "array");
    EXPECT_EQ(array_of(model).count, 1U);
    EXPECT_EQ(array_of(model).bytes.size(), 12U + 2);
    EXPECT_FALSE(testing::error_of(nested(8).write()));
    const WrittenFile deep = nested(9).write();
    expect_refused(deep, "metadata 0 'k': element type",
                   deep.field("metadata 0 'k': 8 element type").offset,
                   "found arrays nested deeper than 8");
}

TEST(GgufMetadata, SeveralArraysInAnArray) {
    const WrittenFile file = GgufWriter()
                                 .add_value("k", gguf::array,
                                            [](WrittenFile& to, const std::string& at) {
                                                GgufWriter::head(to, at, gguf::array, 3);
                                                for (int i = 0; i < 3; ++i)
                                                    GgufWriter::head(to, at, gguf::u64, 0);
                                            })
                                 .add("last", std::uint32_t{7})
                                 .write();
    const ModelFile model = read_model(file);
    EXPECT_EQ(array_of(model).count, 3U);
    EXPECT_EQ(std::get<std::uint64_t>(*model.find_metadata("last")), 7U);
}

TEST(GgufMetadata, UnknownTypesAreRefused) {
    WrittenFile file = GgufWriter().add("k", std::vector<std::uint32_t>{1}).write();
    file.overwrite("metadata 0 'k': element type", 13);
    expect_refused(file, "metadata 0 'k': element type", "found 13, expected a type below 13");
    file.overwrite("metadata 0 'k': type", ~0U);
    expect_refused(file, "metadata 0 'k': type", "found 4294967295, expected a type below 13");
}

TEST(GgufMetadata, ImpossibleCountsAreRefused) {
    for (const std::uint32_t type : {gguf::u8, gguf::f64, gguf::string, gguf::array}) {
        for (const std::uint64_t count : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
            WrittenFile file = GgufWriter().add("k", std::vector<std::uint32_t>{1, 2, 3}).write();
            file.overwrite("metadata 0 'k': element type", type);
            file.overwrite("metadata 0 'k': element count", count);
            expect_refused(file, "metadata 0 'k': element count",
                           "found " + std::to_string(count) + ", expected at most");
        }
    }
}

TEST(GgufMetadata, StringLengthsAreCheckedAgainstTheFile) {
    WrittenFile file = GgufWriter().add("k", std::vector<std::string>{"a", "b"}).write();
    file.overwrite("metadata 0 'k': length of element 1", 2);
    expect_refused(file, "metadata 0 'k': length of element 1", "found 2, expected at most 1");
    WrittenFile text = GgufWriter().add("k", "value").write();
    text.overwrite("metadata 0 'k': length", ~std::uint64_t{0});
    expect_refused(text, "metadata 0 'k': length",
                   "found 18446744073709551615, expected at most 5");
}

TEST(GgufMetadata, BooleansAreZeroOrOne) {
    WrittenFile file = GgufWriter().add("k", true).write();
    file.overwrite("metadata 0 'k': value", 2);
    expect_refused(file, "metadata 0 'k': value", "found 2, expected 0 or 1");
    WrittenFile array = GgufWriter().add("k", std::vector<bool>{true, false}).write();
    array.overwrite_at(array.size() - 1, "\x03");
    expect_refused(array, "metadata 0 'k': element 1", array.size() - 1,
                   "found 3, expected 0 or 1");
}

TEST(GgufMetadata, KeysMustBeUniqueUtf8OfValidLength) {
    const WrittenFile duplicates = GgufWriter().add("k", true).add("x", true).add("k", 1.0).write();
    expect_refused(duplicates, "metadata 2 'k': key text",
                   duplicates.field("metadata 2: key text").offset,
                   "found the key of metadata 0 again");
    const WrittenFile latin = GgufWriter().add("\xfc", true).write();
    expect_refused(latin, "metadata 0: key text", "found '\\xfc', expected UTF-8");
    const WrittenFile empty = GgufWriter().add("", 1.0).write();
    expect_refused(empty, "metadata 0: key length", "found 0 B, expected 1 to 65535 B");
    const WrittenFile longest = GgufWriter().add(std::string(65535, 'k'), true).write();
    EXPECT_EQ(read_model(longest).metadata()[0].key.size(), 65535U);
    const WrittenFile longer = GgufWriter().add(std::string(65536, 'k'), true).write();
    expect_refused(longer, "metadata 0: key length", "found 65536 B");
}

TEST(GgufMetadata, StringsNeedNotBeUtf8) {
    expect_value<std::string_view>("\xff\xfe", "\xff\xfe");
}

}  // namespace
}  // namespace tensorpool
