#pragma once

#include <array>
#include <cstddef>

#include "pages/large_sizes.hpp"
#include "pages/span.hpp"

namespace tensorpool::blocks {

/// The large blocks that one thread freed last and keeps for reuse: up to 24 blocks of at most
/// 8 MiB each. A hit costs no atomic operation, or two if retention limits what is kept. Not
/// thread-safe: a lock of KeptLargeBlocks guards it.
class LargeMagazine {
public:
    static constexpr unsigned max_blocks = 24;
    static constexpr std::size_t max_bytes = std::size_t{8} << 20;  // of one block
    static constexpr std::size_t bytes_per_processor = std::size_t{32} << 20;

    /// Takes the block that was put in last among those whose size is what a request for `pages`
    /// pages is rounded to. Returns nullptr if there is none.
    pages::Span* take(pages::PageCount pages) noexcept {
        if (pages::Span* const span = take_last(pages)) return span;
        for (unsigned at = count_; at-- != 0;) {
            if (!serves(at, pages)) continue;
            pages::Span* const span = spans_[at];
            bytes_ -= bytes_of(pages_[at]);
            for (--count_; at != count_; ++at) move_down(at);
            return span;
        }
        return nullptr;
    }
    /// Takes the block that was put in last if its size is what a request for `pages` pages is
    /// rounded to. Returns nullptr otherwise.
    pages::Span* take_last(pages::PageCount pages) noexcept {
        const unsigned last = count_ - 1;
        if (count_ == 0) return nullptr;
        const pages::PageCount pages_of_last = pages_[last];
        if (pages_of_last - pages >= steps_[last]) return nullptr;
        count_ = last;
        bytes_ -= bytes_of(pages_of_last);
        return spans_[last];
    }

    bool is_full() const noexcept { return count_ == max_blocks; }
    bool empty() const noexcept { return count_ == 0; }
    /// Puts a block in. REQUIRES: the magazine is not full and has room for the span's bytes, and
    /// the span's pages are a rounded size.
    void put(pages::Span& span) noexcept {
        pages_[count_] = span.pages;
        steps_[count_] = pages::large_step(span.pages);
        put_again(span, span.pages);
    }
    /// Puts a block in. Returns false, and does nothing, if there is no room or if the block's
    /// pages are not a rounded size.
    bool put_at_once(pages::Span& span) noexcept {
        const pages::PageCount pages = span.pages;
        if (is_full() || bytes_ + bytes_of(pages) > room) return false;
        // Usually the last block at this position had the same size, and then the size is known to
        // be valid and its step is in place.
        if (pages_[count_] != pages) [[unlikely]] {
            if (!pages::is_rounded_large(pages) || bytes_of(pages) > max_bytes) return false;
            pages_[count_] = pages;
            steps_[count_] = pages::large_step(pages);
        }
        put_again(span, pages);
        return true;
    }
    /// Takes the block that was put in first. REQUIRES: the magazine is not empty.
    pages::Span& take_oldest() noexcept {
        pages::Span& span = *spans_[0];
        bytes_ -= bytes_of(pages_[0]);
        --count_;
        for (unsigned at = 0; at != count_; ++at) move_down(at);
        return span;
    }

    /// The block that was put in first. REQUIRES: the magazine is not empty.
    const pages::Span& oldest() const noexcept { return *spans_[0]; }

    std::size_t bytes() const noexcept { return bytes_; }
    /// Forgets all blocks without freeing them, for a thread that does not exist in the child of a
    /// fork.
    void forget() noexcept { *this = LargeMagazine(); }

    /// The bytes that the blocks may have. KeptLargeBlocks sets it.
    std::size_t room = 0;

private:
    static std::size_t bytes_of(pages::PageCount pages) noexcept {
        return std::size_t{pages} << pages::page_shift;
    }
    bool serves(unsigned at, pages::PageCount pages) const noexcept {
        return pages_[at] - pages < steps_[at];
    }
    void put_again(pages::Span& span, pages::PageCount pages) noexcept {
        spans_[count_] = &span;
        ++count_;
        bytes_ += bytes_of(pages);
    }
    void move_down(unsigned at) noexcept {
        spans_[at] = spans_[at + 1];
        pages_[at] = pages_[at + 1];
        steps_[at] = steps_[at + 1];
    }

    // Entries at and beyond `count_` describe the last block that lay there; 0 if there was none.
    std::array<pages::PageCount, max_blocks> pages_ = {};
    std::array<pages::PageCount, max_blocks> steps_ = {};  // distance to the next smaller size
    std::array<pages::Span*, max_blocks> spans_ = {};
    unsigned count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::blocks
