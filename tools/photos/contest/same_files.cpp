#include "contest/same_files.hpp"

#include <cstring>
#include <fstream>

namespace tensorpool::photos {

bool same_files(const std::filesystem::path& one, const std::filesystem::path& other) {
    std::ifstream first(one, std::ios::binary), second(other, std::ios::binary);
    if (!first || !second) return false;
    char a[1 << 15], b[1 << 15];
    while (first && second) {
        first.read(a, sizeof a);
        second.read(b, sizeof b);
        if (first.gcount() != second.gcount()) return false;
        if (std::memcmp(a, b, static_cast<std::size_t>(first.gcount())) != 0) return false;
    }
    return first.eof() && second.eof();
}

}  // namespace tensorpool::photos
