#pragma once

#include <bit>
#include <cstdint>

#include "pages/span.hpp"

namespace tensorpool::blocks {

/// The spans of one bucket that have room, by the share of their blocks that is not home. The
/// fullest serve first, so that the others become entirely free. Not thread-safe.
class SpansWithRoom {
public:
    static constexpr unsigned list_count = 8;

    /// `blocks` is the number of blocks in a span.
    explicit SpansWithRoom(unsigned blocks) noexcept
        : fullness_per_block_((list_count << fullness_shift) / (blocks + 1)) {}

    /// Returns one of the fullest spans, or nullptr if there is none.
    pages::Span* fullest() noexcept {
        return used_ == 0 ? nullptr : &lists_[std::bit_width(used_) - 1].front();
    }
    /// Puts a span with room into the list where it belongs now, in front of others.
    void place(pages::Span& span) noexcept {
        const unsigned fullness = fullness_of(span);
        if (span.listed && span.fullness == fullness) return;
        remove(span);
        span.fullness = static_cast<std::uint8_t>(fullness);
        lists_[fullness].push_front(span);
        used_ |= 1U << fullness;
        span.listed = true;
    }
    /// Removes a span, if it is in a list.
    void remove(pages::Span& span) noexcept {
        if (!span.listed) return;
        pages::SpanList& list = lists_[span.fullness];
        list.erase(pages::SpanList::s_iterator_to(span));
        if (list.empty()) used_ &= ~(1U << span.fullness);
        span.listed = false;
    }
    pages::SpanList (&lists() noexcept)[list_count] { return lists_; }

private:
    static constexpr unsigned fullness_shift = 16;  // the fractional bits of a fixed-point number

    // The index of the list for this span, by the blocks that are not home.
    unsigned fullness_of(const pages::Span& span) const noexcept {
        return static_cast<unsigned>(span.carved - span.home) * fullness_per_block_ >>
               fullness_shift;
    }

    const unsigned fullness_per_block_;
    unsigned used_ = 0;  // one bit for each list that is not empty
    pages::SpanList lists_[list_count];
};

}  // namespace tensorpool::blocks
