#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include "support/model_promises.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::ModelPromises;
using testing::WrittenFile;

TEST(ModelCorpus, CorpusFilesAreReadOrRefused) {
    unsigned files = 0;
    unsigned read = 0;
    for (const auto& file : std::filesystem::directory_iterator(TENSORPOOL_MODEL_CORPUS)) {
        std::ifstream stream(file.path(), std::ios::binary);
        const std::string bytes(std::istreambuf_iterator<char>(stream), {});
        EXPECT_NO_THROW(read += ModelPromises(std::as_bytes(std::span(bytes))).check())
            << file.path();
        ++files;
    }
    EXPECT_GT(files, 20U);
    EXPECT_GT(read, 5U);
}

/// Changes random bytes, and cuts the file at random positions.
void damage(const WrittenFile& whole, unsigned seed) {
    std::mt19937 random(seed);
    EXPECT_TRUE(ModelPromises(whole.view()).check());
    for (int round = 0; round < 3000; ++round) {
        WrittenFile file = whole;
        for (auto left = 1 + random() % 3; left > 0; --left) {
            const char byte = static_cast<char>(random() % 2 == 0 ? random() : 0xff);
            file.overwrite_at(random() % file.size(), {&byte, 1});
        }
        if (random() % 8 == 0) file.cut_to(random() % file.size());
        EXPECT_NO_THROW(ModelPromises(file.view()).check()) << "seed " << seed << ", " << round;
    }
}

TEST(ModelCorpus, DamagedFilesOfEachFormatAreReadOrRefused) {
    const WrittenFile array =
        testing::npy_file(testing::npy_header("<f4", "(2, 3)"), std::string(24, 'a'));
    damage(array, 1);
    damage(testing::ZipWriter()
               .add("a.npy", array)
               .add({.name = "b.npy", .data = array.bytes(), .zip64 = true})
               .zip64()
               .write(),
           2);
    damage(testing::GgufWriter()
               .add("general.alignment", std::uint32_t{32})
               .add("tokens", std::vector<std::string>{"a", "bc"})
               .add_tensor("a", testing::ggml::q8_0, {64, 2})
               .add_tensor("b", testing::ggml::f32, {3})
               .write(),
           3);
    if (!TENSORPOOL_TESTS_JSON) return;
    damage(testing::SafetensorsWriter()
               .add("format", "pt")
               .add_tensor("a", "F16", {2, 3}, std::string(12, 'a'))
               .add_tensor("b", "F4", {8}, "bbbb")
               .write(),
           4);
}

}  // namespace
}  // namespace tensorpool
