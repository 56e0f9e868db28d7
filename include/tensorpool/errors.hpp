#pragma once

/// @file
/// What is thrown when memory cannot be had.

#include <cstddef>
#include <new>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A request that could not be met. The pool or arena that threw it is as it was before, and every
/// block handed out stays valid. The text lies in the object: making one allocates nothing.
class TENSORPOOL_API AllocationError : public std::bad_alloc {
public:
    /// All sizes in bytes. `owner` and `limit` are cut to what fits.
    AllocationError(const char* owner, std::size_t asked, std::size_t in_use, std::size_t capacity,
                    const char* limit, std::size_t limit_bytes) noexcept;

    /// One line: who, how much was asked, what was in use, which limit was met.
    const char* what() const noexcept override { return text_; }
    std::size_t asked() const noexcept { return asked_; }
    std::size_t in_use() const noexcept { return in_use_; }

private:
    std::size_t asked_;
    std::size_t in_use_;
    char text_[320];
};

}  // namespace tensorpool
