#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::expect_refused;
using testing::read_model;
using testing::SafetensorsWriter;
using testing::WrittenFile;
using Shape = std::vector<std::uint64_t>;

Shape shape_of(const ModelTensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.end()};
}

/// Returns whether the text is a part of the file, and so was not copied.
bool is_in(const WrittenFile& file, std::string_view text) {
    return text.data() >= file.bytes().data() &&
           text.data() + text.size() <= file.bytes().data() + file.size();
}

SafetensorsWriter small_model() {
    SafetensorsWriter model;
    model.add("format", "pt")
        .add_tensor("embedding", "BF16", {3, 4}, std::string(24, 'e'))
        .add_tensor("scale", "F32", {}, "1234");
    return model;
}

class Safetensors : public ::testing::Test {
    void SetUp() override {
        if (!TENSORPOOL_TESTS_JSON) GTEST_SKIP() << "this build has no JSON library";
    }
};

TEST_F(Safetensors, TensorsAndMetadataAreViewsOfTheFile) {
    const WrittenFile file = small_model().write();
    const ModelFile model = read_model(file);
    EXPECT_EQ(model.format(), ModelFormat::safetensors);
    EXPECT_EQ(model.version(), 0U);
    ASSERT_EQ(model.tensors().size(), 2U);

    const ModelTensor& embedding = model.tensors()[0];
    EXPECT_EQ(embedding.name, "embedding");
    EXPECT_TRUE(is_in(file, embedding.name));
    EXPECT_EQ(embedding.type.name, "BF16");
    EXPECT_EQ(embedding.type.data.code, DataCode::bfloat);
    EXPECT_EQ(shape_of(embedding), (Shape{3, 4}));
    EXPECT_EQ(embedding.offset, file.field("data").offset);
    EXPECT_EQ(model.bytes(embedding).data(), file.view().data() + embedding.offset);
    EXPECT_EQ(model.bytes(embedding).size(), 24U);

    const ModelTensor& scale = model.tensors()[1];
    EXPECT_TRUE(scale.shape.empty());
    EXPECT_EQ(file.bytes().substr(scale.offset, scale.bytes), "1234");
    EXPECT_EQ(model.find("scale"), &scale);

    ASSERT_EQ(model.metadata().size(), 1U);
    EXPECT_EQ(model.metadata()[0].key, "format");
    EXPECT_TRUE(is_in(file, model.metadata()[0].key));
    ASSERT_NE(model.find_metadata("format"), nullptr);
    const auto value = std::get<std::string_view>(*model.find_metadata("format"));
    EXPECT_EQ(value, "pt");
    EXPECT_TRUE(is_in(file, value));
}

TEST_F(Safetensors, AcceptsAFileWithoutTensors) {
    for (const char* const header : {"{}", "{\"__metadata__\":{}}"}) {
        const WrittenFile file = SafetensorsWriter::write(header, "");
        const ModelFile model = read_model(file);
        EXPECT_TRUE(model.tensors().empty()) << header;
        EXPECT_TRUE(model.metadata().empty()) << header;
    }
}

TEST_F(Safetensors, HeaderLengthIsCheckedAgainstTheFile) {
    WrittenFile file = small_model().write();
    const std::uint64_t left = file.size() - 8;
    file.overwrite("header length", left + 1);
    expect_refused(file, "header length", "expected at most " + std::to_string(left));
    file.overwrite("header length", 100'000'001);
    expect_refused(file, "header length", "found 100000001, expected at most 100000000 B");
    file.overwrite("header length", left);
    EXPECT_TRUE(testing::error_of(file));
    file.overwrite("header length", 0);
    expect_refused(file, "header", 8, "expected JSON");
}

TEST_F(Safetensors, TruncatedFileIsRefused) {
    const WrittenFile whole = small_model().write();
    for (std::uint64_t bytes = 0; bytes < whole.size(); ++bytes) {
        WrittenFile file = whole;
        file.cut_to(bytes);
        EXPECT_TRUE(testing::error_of(file)) << bytes;
    }
    EXPECT_FALSE(testing::error_of(whole));
}

TEST_F(Safetensors, DamagedHeaderIsReadOrRefused) {
    const WrittenFile whole = small_model().write();
    for (std::uint64_t at = 0; at < whole.field("data").offset; ++at) {
        for (const char byte : {'\0', '\xff', '"', '{', '}', '[', ']', ',', '9', '\\'}) {
            WrittenFile file = whole;
            file.overwrite_at(at, {&byte, 1});
            // The file is read or rejected without harm; tensors lie within the file.
            try {
                const ModelFile model = read_model(file);
                for (const ModelTensor& tensor : model.tensors()) {
                    EXPECT_LE(tensor.offset + tensor.bytes, file.size());
                }
            } catch (const ModelFileError& error) {
                EXPECT_LE(error.offset(), file.size()) << error.what();
            }
        }
    }
}

TEST(SafetensorsWithoutJson, ReportsTheMissingLibrary) {
    if (TENSORPOOL_TESTS_JSON) GTEST_SKIP() << "this build has the JSON library";
    expect_refused(small_model().write(), "header", "nlohmann-json3-dev");
}

}  // namespace
}  // namespace tensorpool
