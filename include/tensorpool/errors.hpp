#pragma once

/// @file
/// The exception for requests that cannot be met.

#include <cstddef>
#include <new>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The circumstances of a failed request. All sizes are bytes.
///
/// Free bytes are those of the capacity, after all free memory had been gathered. If other threads
/// use the pool at that time, each value held at some moment of the request.
struct AllocationFailure {
    /// The requested size.
    std::size_t asked = 0;
    /// The bytes in use.
    std::size_t in_use = 0;
    /// The committed bytes.
    std::size_t capacity = 0;
    /// The limit that was met, such as "max_capacity".
    const char* limit = "";
    /// The value of that limit.
    std::size_t limit_bytes = 0;
    /// The value of that limit with which the request would have succeeded; 0 if raising it would
    /// not help.
    std::size_t needed_limit = 0;

    /// Whether the next four values are known.
    bool knows_free = false;
    /// The free bytes in runs of whole pages.
    std::size_t free_pages = 0;
    /// The bytes of the longest such run.
    std::size_t largest_free = 0;
    /// The free bytes in pages that blocks in use occupy in part.
    std::size_t between_blocks = 0;
    /// The free bytes in the magazines of other threads.
    std::size_t with_threads = 0;

    /// The additional free bytes, in whole pages, with which the request would have succeeded; 0 if
    /// more free memory would not help.
    std::size_t missing = 0;
    /// Another remedy, or "".
    const char* advice = "";
    /// Further lines, each of which begins with a newline, or "". For a budget: its levels.
    const char* details = "";

    /// Returns the free bytes that fragmentation keeps from serving other requests.
    std::size_t in_pieces() const noexcept { return between_blocks + with_threads; }
    /// Returns whether enough memory is free, but in pieces.
    bool is_fragmentation() const noexcept {
        if (missing != 0) return free_pages + in_pieces() >= missing;
        return largest_free < asked && free_pages >= asked;
    }
};

/// A request for memory that could not be met.
///
/// The pool or arena that threw it is unchanged, and every block stays valid. The text is stored in
/// the object, so making one allocates no memory.
class TENSORPOOL_API AllocationError : public std::bad_alloc {
public:
    /// Makes the error from the name of the pool or arena and the circumstances. The strings are
    /// copied and cut to the space that the object has.
    AllocationError(const char* owner, const AllocationFailure& failure) noexcept;
    /// Makes the error from the name of the pool or arena and the main values, all in bytes, if
    /// nothing else is known. The strings are copied and cut to the space that the object has.
    AllocationError(const char* owner, std::size_t asked, std::size_t in_use, std::size_t capacity,
                    const char* limit, std::size_t limit_bytes) noexcept;

    /// Returns the text: one line with the owner, the requested size, the bytes in use and the
    /// limit that was met.
    ///
    /// If more is known, further lines state which memory is free and in which pieces, whether
    /// fragmentation alone is the cause, and what would have let the request succeed. There is no
    /// newline at the end.
    const char* what() const noexcept override { return text_; }
    /// Returns the requested size, in bytes.
    std::size_t asked() const noexcept { return asked_; }
    /// Returns the bytes in use at that time.
    std::size_t in_use() const noexcept { return in_use_; }
    /// Returns the bytes committed at that time.
    std::size_t capacity() const noexcept { return capacity_; }
    /// Returns the free bytes that lie in pieces too small for whole pages.
    std::size_t free_in_pieces() const noexcept { return in_pieces_; }
    /// Returns the bytes of the longest free run of whole pages.
    std::size_t largest_free() const noexcept { return largest_free_; }
    /// Returns the additional free bytes, in whole pages, with which the request would have
    /// succeeded; 0 if more free memory would not have helped.
    std::size_t missing() const noexcept { return missing_; }
    /// Returns whether enough memory is free, but in pieces.
    bool is_fragmentation() const noexcept { return is_fragmentation_; }

private:
    std::size_t asked_;
    std::size_t in_use_;
    std::size_t capacity_;
    std::size_t in_pieces_;
    std::size_t largest_free_;
    std::size_t missing_;
    bool is_fragmentation_;
    char text_[1792];
};

}  // namespace tensorpool
