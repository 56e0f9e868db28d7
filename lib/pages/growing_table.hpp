#pragma once

#include <cstddef>

#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

/// A zero-initialized array at a fixed address that grows on demand. It reserves nothing ahead. Not
/// thread-safe.
class GrowingTable {
public:
    void set_up(std::byte* begin) noexcept { begin_ = begin; }
    std::byte* begin() const noexcept { return begin_; }

    /// Grows the table to at least `bytes` bytes. Returns false, and changes nothing, if the system
    /// refuses or if other code has mapped something there.
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

    /// Unmaps the table, which is empty afterwards.
    void release() noexcept {
        if (bytes_ != 0) platform::release(begin_, bytes_);
        bytes_ = 0;
    }

private:
    // The granularity of reservations on Windows. No system has larger pages.
    static constexpr std::size_t unit = std::size_t{64} << 10;

    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::pages
