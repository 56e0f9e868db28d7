#pragma once

#include <array>
#include <cstddef>

#include "pages/span.hpp"

namespace tensorpool::blocks {

/// The large blocks that one thread freed last and keeps for itself: up to 24 of at most 8 MiB. A
/// hit costs no atomic operation, but two where retention limits what is kept. A ParkingLimit
/// bounds what lies in those of all threads: `room` is what this one has of it. Not thread-safe:
/// Cache's lock guards it.
class LargeMagazine {
public:
    static constexpr unsigned most_blocks = 24;
    static constexpr std::size_t most_bytes = std::size_t{8} << 20;  // of one block
    static constexpr std::size_t bytes_per_processor = std::size_t{32} << 20;

    /// The one of just so many pages that was put in last; nullptr if there is none.
    pages::Span* take(pages::PageCount pages) noexcept {
        for (unsigned at = count_; at-- != 0;) {
            if (pages_[at] != pages) continue;
            pages::Span* const span = spans_[at];
            for (--count_; at != count_; ++at) move_down(at);
            bytes_ -= span->bytes();
            return span;
        }
        return nullptr;
    }

    bool is_full() const noexcept { return count_ == most_blocks; }
    /// Whether a block may be put in without more room of all threads'.
    bool has_room_for(const pages::Span& span) const noexcept {
        return !is_full() && span.bytes() <= most_bytes && bytes_ + span.bytes() <= room;
    }
    bool empty() const noexcept { return count_ == 0; }
    /// REQUIRES: it is not full, and has room for the span's bytes.
    void put(pages::Span& span) noexcept {
        spans_[count_] = &span;
        pages_[count_] = span.pages;
        ++count_;
        bytes_ += span.bytes();
    }
    /// The one that has been here longest.
    /// REQUIRES: it is not empty.
    pages::Span& take_oldest() noexcept {
        pages::Span& span = *spans_[0];
        --count_;
        for (unsigned at = 0; at != count_; ++at) move_down(at);
        bytes_ -= span.bytes();
        return span;
    }

    /// REQUIRES: it is not empty.
    const pages::Span& oldest() const noexcept { return *spans_[0]; }

    std::size_t bytes() const noexcept { return bytes_; }
    /// For a thread that a fork left behind: what it held stays where it is.
    void forget() noexcept { *this = LargeMagazine(); }

    std::size_t room = 0;

private:
    void move_down(unsigned at) noexcept {
        spans_[at] = spans_[at + 1];
        pages_[at] = pages_[at + 1];
    }

    std::array<pages::PageCount, most_blocks> pages_ = {};
    std::array<pages::Span*, most_blocks> spans_ = {};
    unsigned count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::blocks
