#include <tensorpool/model_file.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include <tensorpool/tensorpool_models.h>

#include "support/model_writers.hpp"

namespace {

using tensorpool::testing::GgufWriter;
using tensorpool::testing::WrittenFile;
namespace ggml = tensorpool::testing::ggml;

struct Closer {
    void operator()(tensorpool_model_file* file) const { tensorpool_model_file_close(file); }
};
using OwnedFile = std::unique_ptr<tensorpool_model_file, Closer>;

std::string string_of(tensorpool_text text) {
    return {text.text, text.bytes};
}

bool last_error_has(const char* text) {
    return std::string(tensorpool_last_error()).find(text) != std::string::npos;
}

class CModelFile : public ::testing::Test {
protected:
    CModelFile()
        : written_(GgufWriter()
                       .add("general.name", "tiny")
                       .add_tensor("w", ggml::i8, {5}, "12345")
                       .write()),
          file_(tensorpool_model_file_read(written_.bytes().data(), written_.size(), "in memory")) {
    }
    tensorpool_metadata_entry entry(const char* key) const {
        tensorpool_metadata_entry entry;
        entry.struct_bytes = sizeof entry;
        EXPECT_EQ(tensorpool_model_file_find_metadata(file_.get(), key, &entry), tensorpool_ok);
        return entry;
    }
    WrittenFile written_;
    OwnedFile file_;
};

TEST_F(CModelFile, DescribesTheFile) {
    ASSERT_NE(file_, nullptr) << tensorpool_last_error();
    EXPECT_STREQ(tensorpool_model_file_name(file_.get()), "in memory");
    EXPECT_EQ(tensorpool_model_file_format(file_.get()), tensorpool_model_gguf);
    EXPECT_EQ(tensorpool_model_file_version(file_.get()), 3U);
    EXPECT_EQ(tensorpool_model_file_mapping(file_.get()), nullptr);
}

TEST_F(CModelFile, DescribesATensor) {
    ASSERT_NE(file_, nullptr);
    tensorpool_model_tensor tensor;
    tensor.struct_bytes = sizeof tensor;
    ASSERT_EQ(tensorpool_model_file_find(file_.get(), "w", &tensor), tensorpool_ok);
    EXPECT_EQ(string_of(tensor.name), "w");
    EXPECT_EQ(string_of(tensor.type), "I8");
    EXPECT_EQ(tensor.block_elements, 1U);
    EXPECT_EQ(tensor.block_bytes, 1U);
    EXPECT_EQ(tensor.dlpack_code, 0);
    ASSERT_EQ(tensor.dimensions, 1U);
    EXPECT_EQ(tensor.shape[0], 5U);
    EXPECT_EQ(std::string(static_cast<const char*>(tensor.data), tensor.bytes), "12345");
}

TEST_F(CModelFile, MissingTensorIsRefusedByNameAndNumber) {
    tensorpool_model_tensor tensor;
    tensor.struct_bytes = sizeof tensor;
    EXPECT_EQ(tensorpool_model_file_find(file_.get(), "v", &tensor), tensorpool_invalid_argument);
    EXPECT_TRUE(last_error_has("in memory has no tensor 'v'")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_model_file_tensor(file_.get(), 1, &tensor), tensorpool_invalid_argument);
    EXPECT_TRUE(last_error_has("expected less than the 1 tensors")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_model_file_tensor(file_.get(), 0, nullptr), tensorpool_invalid_argument);
}

TEST_F(CModelFile, HasMetadata) {
    EXPECT_EQ(string_of(entry("general.name").text), "tiny");
    EXPECT_EQ(entry("general.name").kind, tensorpool_metadata_text);
    tensorpool_metadata_entry first;
    first.struct_bytes = sizeof first;
    ASSERT_GE(tensorpool_model_file_metadata_count(file_.get()), 1U);
    EXPECT_EQ(tensorpool_model_file_metadata(file_.get(), 0, &first), tensorpool_ok);
    EXPECT_FALSE(string_of(first.key).empty());
    EXPECT_EQ(tensorpool_model_file_find_metadata(file_.get(), "none", &first),
              tensorpool_invalid_argument);
}

TEST_F(CModelFile, DamagedFileIsRefusedWithItsReason) {
    EXPECT_EQ(tensorpool_model_file_read("GGUF", 4, "short"), nullptr);
    EXPECT_TRUE(last_error_has("short")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_model_file_open("no such model"), nullptr);
    EXPECT_TRUE(last_error_has("no such model")) << tensorpool_last_error();
    EXPECT_EQ(tensorpool_model_file_open(nullptr), nullptr);
    EXPECT_EQ(tensorpool_model_file_read(nullptr, 1, "null"), nullptr);
    EXPECT_EQ(tensorpool_model_file_format(nullptr), -1);
    tensorpool_model_file_close(nullptr);
}

}  // namespace
