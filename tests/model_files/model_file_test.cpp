#include <tensorpool/model_file.hpp>

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <tensorpool/mapped_file.hpp>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"
#include "support/temporary_path.hpp"

namespace tensorpool {
namespace {

using testing::GgufWriter;
using testing::read_model;
using testing::WrittenFile;
namespace ggml = testing::ggml;

/// A temporary file on the disk.
class FileOnDisk {
public:
    FileOnDisk(const std::string& ending, const std::string& bytes) : path_(ending) {
        std::ofstream(path_.path(), std::ios::binary) << bytes;
    }
    std::string path() const { return path_.text(); }
    std::string stem() const { return path_.path().stem().string(); }

private:
    testing::TemporaryPath path_;
};

WrittenFile one_tensor() {
    return GgufWriter().add("general.name", "tiny").add_tensor("w", ggml::i8, {5}, "12345").write();
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ModelFile, OpenMapsTheFile) {
    const WrittenFile written = one_tensor();
    const FileOnDisk file(".gguf", written.bytes());
    ModelFile model = ModelFile::open(file.path());
    EXPECT_EQ(model.name(), file.path());
    EXPECT_EQ(model.file_bytes(), written.size());
    ASSERT_NE(model.mapping(), nullptr);
    EXPECT_EQ(model.mapping()->path(), file.path());
    const ModelTensor& tensor = model.tensors()[0];
    EXPECT_EQ(text_of(model.bytes(tensor)), "12345");
    EXPECT_EQ(model.bytes(tensor).data(), model.mapping()->bytes().data() + tensor.offset);
    EXPECT_EQ(std::as_const(model).mapping(), model.mapping());
}

TEST(ModelFile, ReadFromBytesHasNoMapping) {
    const WrittenFile file = one_tensor();
    ModelFile model = read_model(file);
    EXPECT_EQ(model.mapping(), nullptr);
    EXPECT_EQ(std::as_const(model).mapping(), nullptr);
}

TEST(ModelFile, MoveKeepsViewsValid) {
    const WrittenFile written = one_tensor();
    const FileOnDisk file(".gguf", written.bytes());
    ModelFile model = ModelFile::open(file.path());
    const ModelTensor* const tensor = model.find("w");
    const auto shape = tensor->shape;
    ModelFile moved = std::move(model);
    EXPECT_EQ(moved.find("w"), tensor);
    EXPECT_EQ(shape[0], 5U);
    EXPECT_EQ(tensor->name, "w");
    const FileOnDisk other(".npy",
                           testing::npy_file(testing::npy_header("|u1", "()"), "x").bytes());
    ModelFile array = ModelFile::open(other.path());
    EXPECT_EQ(array.tensors()[0].name, other.stem());
    array = std::move(moved);
    EXPECT_EQ(array.find("w"), tensor);
    EXPECT_EQ(text_of(array.bytes(*tensor)), "12345");
}

TEST(ModelFile, OpenFailureThrowsSystemError) {
    EXPECT_THROW(ModelFile::open("/nowhere/model.gguf"), std::system_error);
    EXPECT_THROW(ModelFile::open(::testing::TempDir()), std::system_error);
}

TEST(ModelFile, ErrorNamesTheDamagedFile) {
    WrittenFile written = one_tensor();
    written.overwrite("version", 9);
    const FileOnDisk file(".gguf", written.bytes());
    try {
        ModelFile::open(file.path());
        ADD_FAILURE();
    } catch (const ModelFileError& error) {
        EXPECT_EQ(std::string(error.what()),
                  "tensorpool: " + file.path() + ": version, at byte 4: found 9, expected 2 or 3");
    }
}

TEST(ModelFile, UnknownFormatsAreRefused) {
    WrittenFile text;
    text.append("hello, world\n");
    testing::expect_refused(text, "first bytes", 0,
                            "found 'hello, w', expected those of GGUF, safetensors, .npy or .npz");
    testing::expect_refused(WrittenFile(), "first bytes", 0, "found an empty file");
    const FileOnDisk empty("", "");
    EXPECT_THROW(ModelFile::open(empty.path()), ModelFileError);
}

TEST(ModelFile, MayBeReadByConcurrentThreads) {
    GgufWriter writer;
    for (int i = 0; i < 100; ++i)
        writer.add_tensor("tensor" + std::to_string(i), ggml::i8, {3}, "abc");
    const WrittenFile file = writer.write();
    const ModelFile model = read_model(file);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
        threads.emplace_back([&model] {
            for (const ModelTensor& tensor : model.tensors()) {
                EXPECT_EQ(model.find(tensor.name), &tensor);
                EXPECT_EQ(text_of(model.bytes(tensor)), "abc");
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

TEST(ModelFile, FindsEachOfManyTensors) {
    GgufWriter writer;
    for (int i = 0; i < 3000; ++i) {
        writer.add_tensor("blk." + std::to_string(i) + ".ffn_up.weight", ggml::i8, {1});
    }
    const WrittenFile file = writer.write();
    const ModelFile model = read_model(file);
    ASSERT_EQ(model.tensors().size(), 3000U);
    for (const ModelTensor& tensor : model.tensors()) EXPECT_EQ(model.find(tensor.name), &tensor);
}

}  // namespace
}  // namespace tensorpool
