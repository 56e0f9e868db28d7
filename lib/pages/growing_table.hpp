#pragma once

#include <cstddef>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

/// Zeros at an address that was chosen beforehand, as many bytes as were needed so far: nothing is
/// reserved ahead. Not thread-safe.
class GrowingTable {
public:
    void set_up(std::byte* begin) noexcept { begin_ = begin; }
    std::byte* begin() const noexcept { return begin_; }

    /// Makes it at least so many bytes. False where the system refuses, or others have mapped
    /// something in the way: then it is as it was.
    bool grow(std::size_t bytes) noexcept {
        if (bytes <= bytes_) return true;
        const std::size_t whole = base::align_up(bytes, unit);
        std::byte* const from = begin_ + bytes_;
        const std::size_t more = whole - bytes_;
        if (platform::reserve_at(from, more) != platform::ReservedAt::done) return false;
        if (!platform::commit(from, more)) {
            platform::release(from, more);
            return false;
        }
        bytes_ = whole;
        return true;
    }

    /// It is empty then.
    void release() noexcept {
        if (bytes_ != 0) platform::release(begin_, bytes_);
        bytes_ = 0;
    }

private:
    // What Windows reserves at once, and as large as any system's page.
    static constexpr std::size_t unit = std::size_t{64} << 10;

    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::pages
