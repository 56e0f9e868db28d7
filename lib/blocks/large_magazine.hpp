#pragma once

#include <array>
#include <cstddef>

#include "pages/large_sizes.hpp"
#include "pages/span.hpp"

namespace tensorpool::blocks {

/// The large blocks that one thread freed last and keeps for itself: up to 24 of at most 8 MiB. A
/// hit costs no atomic operation, but two where retention limits what is kept. A ParkingLimit
/// bounds what lies in those of all threads: `room` is what this one has of it. Not thread-safe:
/// Cache's lock guards it.
class LargeMagazine {
public:
    static constexpr unsigned max_blocks = 24;
    static constexpr std::size_t max_bytes = std::size_t{8} << 20;  // of one block
    static constexpr std::size_t bytes_per_processor = std::size_t{32} << 20;

    /// Of those with the pages that a request for this many gets, the one that was put in last;
    /// nullptr if there is none.
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
    /// The block that was put in last, if a request for this many pages gets as many as it has.
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
    /// REQUIRES: it is not full and has room for the span's bytes, whose pages are a rounded size.
    void put(pages::Span& span) noexcept {
        pages_[count_] = span.pages;
        steps_[count_] = pages::large_step(span.pages);
        put_again(span, span.pages);
    }
    /// False, and nothing done, if there is no room, or the block's pages are no rounded size.
    bool put_at_once(pages::Span& span) noexcept {
        const pages::PageCount pages = span.pages;
        if (is_full() || bytes_ + bytes_of(pages) > room) return false;
        // Mostly the last block that lay in this place had as many, and then that is known.
        if (pages_[count_] != pages) [[unlikely]] {
            if (!pages::is_rounded_large(pages) || bytes_of(pages) > max_bytes) return false;
            pages_[count_] = pages;
            steps_[count_] = pages::large_step(pages);
        }
        put_again(span, pages);
        return true;
    }
    /// The one that has been here longest.
    /// REQUIRES: it is not empty.
    pages::Span& take_oldest() noexcept {
        pages::Span& span = *spans_[0];
        bytes_ -= bytes_of(pages_[0]);
        --count_;
        for (unsigned at = 0; at != count_; ++at) move_down(at);
        return span;
    }

    /// REQUIRES: it is not empty.
    const pages::Span& oldest() const noexcept { return *spans_[0]; }

    std::size_t bytes() const noexcept { return bytes_; }
    /// For a thread that a fork left behind: what it held stays where it is.
    void forget() noexcept { *this = LargeMagazine(); }

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

    // Beyond `count_` of the block that lay there last; 0 where there was none.
    std::array<pages::PageCount, max_blocks> pages_ = {};
    std::array<pages::PageCount, max_blocks> steps_ = {};  // to the next smaller size
    std::array<pages::Span*, max_blocks> spans_ = {};
    unsigned count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::blocks
