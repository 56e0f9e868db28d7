#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace tensorpool::base {

/// A size for people, such as "64 B", "1.5 MiB", in a buffer of its own: nothing is allocated.
class BytesText {
public:
    explicit BytesText(std::uint64_t bytes) noexcept;
    const char* c_str() const noexcept { return text_; }

private:
    char text_[24];
};

}  // namespace tensorpool::base
