#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include "fed_server.hpp"

namespace tensorpool::command::serve {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Returns the files of the corpus in order of their names.
std::vector<Bytes> corpus() {
    std::vector<std::filesystem::path> paths;
    for (const auto& file : std::filesystem::directory_iterator(TENSORPOOL_SERVE_CORPUS)) {
        paths.push_back(file.path());
    }
    std::sort(paths.begin(), paths.end());
    std::vector<Bytes> all;
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        all.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return all;
}

/// Changes a byte, removes a part, or inserts a part of another input.
void change(Bytes& bytes, const Bytes& other, std::mt19937& random) {
    const auto below = [&](std::size_t count) { return count == 0 ? 0 : random() % count; };
    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size()));
    switch (below(3)) {
        case 0:
            if (at != bytes.end()) *at = static_cast<std::uint8_t>(random());
            break;
        case 1:
            bytes.erase(at, at + static_cast<std::ptrdiff_t>(
                                     below(static_cast<std::size_t>(bytes.end() - at))));
            break;
        default:
            bytes.insert(at, other.begin() + static_cast<std::ptrdiff_t>(below(other.size())),
                         other.end());
    }
}

TEST(ServeFuzz, HoldsForTheCorpus) {
    EXPECT_GE(corpus().size(), 20u);
    for (const Bytes& bytes : corpus()) testing::feed_server(bytes);
}

TEST(ServeFuzz, HoldsForVariationsOfTheCorpus) {
    const std::vector<Bytes> all = corpus();
    std::mt19937 random(4);
    for (int i = 0; i < 3000; ++i) {
        Bytes bytes = all[random() % all.size()];
        for (std::size_t changes = 1 + random() % 4; changes > 0; --changes) {
            change(bytes, all[random() % all.size()], random);
        }
        testing::feed_server(bytes);
    }
}

}  // namespace
}  // namespace tensorpool::command::serve
