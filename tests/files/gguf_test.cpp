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

TEST(Gguf, ToldByItsFirstBytesAndVersion) {
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

}  // namespace
}  // namespace tensorpool
