#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "support/file_tree.hpp"

namespace tensorpool::files {

/// A temporary file.
struct File {
    explicit File(const std::string& content) { tree.write("/model", content); }
    std::string path() const { return tree.path("/model"); }
    testing::FileTree tree;
};

/// Returns content in which each byte depends on its position, so that no two pages are equal.
inline std::string numbered_text(std::size_t bytes) {
    std::string text(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) {
        text[i] = static_cast<char>((i * 2654435761U) >> 13);  // Knuth's multiplicative hash
    }
    return text;
}

inline std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Returns the message of the `Error` that `call` throws.
template <class Error, class Call>
std::string error_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

}  // namespace tensorpool::files
