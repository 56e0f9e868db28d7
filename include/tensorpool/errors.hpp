#pragma once

/// @file
/// What is thrown when memory cannot be had.

#include <cstddef>
#include <new>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// How things stood when a request was refused. All sizes are bytes. What is free is of the
/// capacity, after all that could be gathered had been; what a figure says of a pool that other
/// threads use meanwhile held at some moment of the refusal.
struct AllocationFailure {
    std::size_t asked = 0;
    std::size_t in_use = 0;
    std::size_t capacity = 0;
    const char* limit = "";  ///< the one that was met, such as "max_capacity"
    std::size_t limit_bytes = 0;
    std::size_t needed_limit = 0;  ///< what that would have to be; 0: it would not help

    /// Whether the next four are known.
    bool knows_free = false;
    std::size_t free_pages = 0;      ///< free, in runs of whole pages
    std::size_t largest_free = 0;    ///< the longest of those
    std::size_t between_blocks = 0;  ///< free, in pages that blocks in use keep
    std::size_t with_threads = 0;    ///< free, in the magazines of other threads

    /// So much more, free in whole pages, would have let it fit; 0: that would not help.
    std::size_t missing = 0;
    const char* advice = "";  ///< what else would help

    /// What fragmentation keeps from being used for something else.
    std::size_t in_pieces() const noexcept { return between_blocks + with_threads; }
    /// Enough is free, but in pieces.
    bool is_fragmentation() const noexcept {
        if (missing != 0) return free_pages + in_pieces() >= missing;
        return largest_free < asked && free_pages >= asked;
    }
};

/// A request that could not be met. The pool or arena that threw it is as it was before, and every
/// block handed out stays valid. The text lies in the object: making one allocates nothing.
class TENSORPOOL_API AllocationError : public std::bad_alloc {
public:
    /// `owner`, and the texts in `failure`, are cut to what fits, and not looked at later.
    AllocationError(const char* owner, const AllocationFailure& failure) noexcept;
    /// The same for one of which nothing else is known. All sizes in bytes.
    AllocationError(const char* owner, std::size_t asked, std::size_t in_use, std::size_t capacity,
                    const char* limit, std::size_t limit_bytes) noexcept;

    /// One line: who, how much was asked, what was in use, which limit was met. Where more is
    /// known, further lines: what is free and in which pieces, whether fragmentation alone refuses
    /// it, what would have let it fit. No newline at the end.
    const char* what() const noexcept override { return text_; }
    std::size_t asked() const noexcept { return asked_; }
    std::size_t in_use() const noexcept { return in_use_; }
    std::size_t capacity() const noexcept { return capacity_; }
    /// Bytes that are free, but in pieces that whole pages cannot be made of.
    std::size_t free_in_pieces() const noexcept { return in_pieces_; }
    /// The longest free run of whole pages.
    std::size_t largest_free() const noexcept { return largest_free_; }
    /// So much more, free in whole pages, would have let it fit; 0: that would not have helped.
    std::size_t missing() const noexcept { return missing_; }
    /// Enough is free, but in pieces.
    bool is_fragmentation() const noexcept { return is_fragmentation_; }

private:
    std::size_t asked_;
    std::size_t in_use_;
    std::size_t capacity_;
    std::size_t in_pieces_;
    std::size_t largest_free_;
    std::size_t missing_;
    bool is_fragmentation_;
    char text_[768];
};

}  // namespace tensorpool
