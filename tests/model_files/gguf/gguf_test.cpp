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

using Shape = std::vector<std::uint64_t>;

Shape shape_of(const ModelTensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.end()};
}

GgufWriter small_model() {
    GgufWriter model;
    model.add("general.architecture", "llama")
        .add("llama.block_count", std::uint32_t{2})
        .add_tensor("token_embd.weight", ggml::f16, {6, 5}, std::string(60, 'e'))
        .add_tensor("output.weight", ggml::q4_0, {64, 2}, std::string(72, 'o'))
        .add_tensor("scale", ggml::f32, {}, "1234");
    return model;
}

TEST(Gguf, IsDetectedByMagicAndVersion) {
    for (const std::uint32_t version : {2U, 3U}) {
        const WrittenFile file = GgufWriter(version).write();
        const ModelFile model = read_model(file);
        EXPECT_EQ(model.format(), ModelFormat::gguf);
        EXPECT_EQ(model.version(), version);
        EXPECT_EQ(model.file_bytes(), 24U);
        EXPECT_TRUE(model.tensors().empty());
        EXPECT_TRUE(model.metadata().empty());
    }
}

TEST(Gguf, TensorsAreViewsOfTheFileWithTheSlowestDimensionFirst) {
    const WrittenFile file = small_model().write();
    const ModelFile model = read_model(file);
    ASSERT_EQ(model.tensors().size(), 3U);

    const ModelTensor& embedding = model.tensors()[0];
    EXPECT_EQ(embedding.name, "token_embd.weight");
    EXPECT_EQ(embedding.type.name, "F16");
    EXPECT_EQ(shape_of(embedding), (Shape{5, 6}));
    EXPECT_EQ(embedding.bytes, 60U);
    EXPECT_FALSE(embedding.column_major);
    EXPECT_EQ(embedding.offset % 32, 0U);
    EXPECT_EQ(model.bytes(embedding).data(), file.view().data() + embedding.offset);
    EXPECT_EQ(file.bytes().substr(embedding.offset, embedding.bytes), std::string(60, 'e'));

    const ModelTensor& output = model.tensors()[1];
    EXPECT_EQ(shape_of(output), (Shape{2, 64}));
    EXPECT_EQ(output.bytes, 2U * 2 * 18);
    EXPECT_EQ(output.offset, embedding.offset + 64);
    EXPECT_EQ(file.bytes().substr(output.offset, output.bytes), std::string(72, 'o'));

    const ModelTensor& scale = model.tensors()[2];
    EXPECT_TRUE(scale.shape.empty());
    EXPECT_EQ(file.bytes().substr(scale.offset, scale.bytes), "1234");
    EXPECT_EQ(scale.offset + scale.bytes, file.size());
}

TEST(Gguf, FindsTensorsAndMetadataByName) {
    const WrittenFile file = small_model().write();
    const ModelFile model = read_model(file);
    for (const ModelTensor& tensor : model.tensors()) EXPECT_EQ(model.find(tensor.name), &tensor);
    EXPECT_EQ(model.find("output"), nullptr);
    EXPECT_EQ(model.find(""), nullptr);
    for (const MetadataEntry& entry : model.metadata()) {
        EXPECT_EQ(model.find_metadata(entry.key), &entry.value);
    }
    EXPECT_EQ(model.find_metadata("llama"), nullptr);
}

TEST(Gguf, OtherVersionsAreRefused) {
    WrittenFile file = small_model().write();
    for (const std::uint32_t version : {0U, 1U, 4U, 0x10003U}) {
        file.overwrite("version", version);
        expect_refused(file, "version", "found " + std::to_string(version) + ", expected 2 or 3");
    }
}

TEST(Gguf, BigEndianFilesAreNamedAndRefused) {
    WrittenFile file = small_model().write();
    file.overwrite("version", 0x03000000);
    expect_refused(file, "version", "in the other byte order that is 3: the file is big-endian");
}

TEST(Gguf, ImpossibleCountsAreRefused) {
    for (const char* const field : {"tensor count", "metadata count"}) {
        for (const std::uint64_t count :
             {std::uint64_t{1000}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
            WrittenFile file = small_model().write();
            file.overwrite(field, count);
            expect_refused(file, field, "found " + std::to_string(count) + ", expected at most ");
        }
    }
}

TEST(Gguf, CountsTooLargeByOneAreRefused) {
    for (const char* const field : {"tensor count", "metadata count"}) {
        WrittenFile file = small_model().write();
        const std::uint64_t count = field[0] == 't' ? 3 : 2;
        file.overwrite(field, count + 1);
        EXPECT_TRUE(testing::error_of(file)) << field;
    }
}

TEST(Gguf, TruncatedFileIsRefused) {
    const WrittenFile whole = small_model().write();
    for (std::uint64_t bytes = 0; bytes < whole.size(); ++bytes) {
        WrittenFile file = whole;
        file.cut_to(bytes);
        const auto error = testing::error_of(file);
        ASSERT_TRUE(error) << bytes;
        EXPECT_LE(error->offset(), bytes) << error->what();
    }
    EXPECT_FALSE(testing::error_of(whole));
}

TEST(Gguf, AnyValueOfAFieldIsReadOrRefused) {
    const WrittenFile whole = small_model().write();
    for (const testing::WrittenField& field : whole.fields()) {
        for (const std::uint64_t value :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{255},
              std::uint64_t{1} << 31, std::uint64_t{1} << 62, std::uint64_t{1} << 63,
              ~std::uint64_t{0}, ~std::uint64_t{0} - 31}) {
            WrittenFile file = whole;
            file.overwrite(field.name, value);
            // The file is read or rejected without harm; tensors lie within the file.
            try {
                const ModelFile model = read_model(file);
                for (const ModelTensor& tensor : model.tensors()) {
                    EXPECT_EQ(model.bytes(tensor).size(), tensor.bytes) << field.name;
                }
            } catch (const ModelFileError& error) {
                EXPECT_LE(error.offset(), file.size()) << error.what();
            }
        }
    }
}

}  // namespace
}  // namespace tensorpool
