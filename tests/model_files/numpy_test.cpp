#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <tensorpool/model_file.hpp>

#include "support/temporary_path.hpp"

namespace tensorpool {
namespace {

namespace fs = std::filesystem;

/// Files that NumPy itself writes. Skipped if Python or NumPy is missing.
class NumPy : public ::testing::Test {
protected:
    void SetUp() override {
        fs::create_directories(folder());
        std::ofstream(folder() / "write.py") << "import numpy as np, sys\nf = sys.argv[1] + '/'\n"
                                                "a = np.arange(24, dtype='<i4').reshape(2, 3, 4)\n"
                                                "np.save(f + 'a.npy', a)\n"
                                                "np.save(f + 'fortran.npy', np.asfortranarray(a))\n"
                                                "np.save(f + 'scalar.npy', np.float64(2.5))\n"
                                                "np.save(f + 'big.npy', a.astype('>f8'))\n"
                                                "np.save(f + 'text.npy', np.array(['abc', 'd']))\n"
                                                "np.save(f + 'fields.npy', np.zeros(3, 'i4,f8'))\n"
                                                "np.save(f + 'objects.npy', np.array([{}, None]))\n"
                                                "np.savez(f + 'all.npz', a=a, b=np.ones(5, '?'))\n"
                                                "np.savez(f + 'none.npz')\n"
                                                "np.savez_compressed(f + 'small.npz', a=a)\n";
        const std::string command = "/usr/bin/python3 '" + (folder() / "write.py").string() +
                                    "' '" + folder_.text() + "' >/dev/null 2>&1";
        if (std::system(command.c_str()) != 0) GTEST_SKIP() << "no NumPy for /usr/bin/python3";
    }
    ModelFile open(const char* name) const { return ModelFile::open((folder() / name).string()); }
    std::string refusal_of(const char* name) const {
        try {
            open(name);
        } catch (const ModelFileError& error) {
            return error.what();
        }
        return "none";
    }

    const fs::path& folder() const { return folder_.path(); }

    testing::TemporaryPath folder_;
};

std::vector<std::uint64_t> shape_of(const ModelTensor& tensor) {
    return {tensor.shape.begin(), tensor.shape.end()};
}

TEST_F(NumPy, ItsArraysAreRead) {
    const ModelFile a = open("a.npy");
    EXPECT_EQ(a.tensors()[0].type.name, "<i4");
    EXPECT_EQ(shape_of(a.tensors()[0]), (std::vector<std::uint64_t>{2, 3, 4}));
    const auto bytes = a.bytes(a.tensors()[0]);
    ASSERT_EQ(bytes.size(), 96U);
    for (unsigned i = 0; i < 24; ++i) EXPECT_EQ(bytes[4 * i], std::byte(i));

    EXPECT_TRUE(open("fortran.npy").tensors()[0].column_major);
    EXPECT_TRUE(open("scalar.npy").tensors()[0].shape.empty());
    EXPECT_EQ(open("big.npy").tensors()[0].type.name, ">f8");
    const ModelFile text = open("text.npy");
    EXPECT_EQ(text.tensors()[0].type.name, "<U3");
    EXPECT_EQ(text.tensors()[0].bytes, 24U);
}

TEST_F(NumPy, ItsArchivesAreRead) {
    const ModelFile all = open("all.npz");
    ASSERT_EQ(all.tensors().size(), 2U);
    const ModelTensor* const a = all.find("a");
    ASSERT_NE(a, nullptr);
    for (unsigned i = 0; i < 24; ++i) EXPECT_EQ(all.bytes(*a)[4 * i], std::byte(i));
    ASSERT_NE(all.find("b"), nullptr);
    EXPECT_EQ(all.find("b")->type.name, "|b1");
    EXPECT_TRUE(open("none.npz").tensors().empty());
}

TEST_F(NumPy, TypesWithoutViewsAreRefused) {
    EXPECT_NE(refusal_of("fields.npy").find("structured type"), std::string::npos);
    EXPECT_NE(refusal_of("objects.npy").find("objects: they are pickled"), std::string::npos);
    EXPECT_NE(refusal_of("small.npz").find("numpy.savez instead of"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool
