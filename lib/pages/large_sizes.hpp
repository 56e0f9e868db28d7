#pragma once

#include "pages/page_map.hpp"

namespace tensorpool::pages {

/// Sizes of large blocks, in pages. Up to 1 MiB there are eight sizes for each doubling: rounding
/// wastes at most an eighth, and a tensor of a slightly different size can reuse the block of the
/// previous one. Above, there are thirty-two: a search costs little compared with touching the
/// block, and waste matters more.
inline constexpr PageCount finer_above_pages = 256;

constexpr unsigned large_step_shift(PageCount pages) noexcept {
    if (pages <= 16) return 0;
    return static_cast<unsigned>(std::bit_width(pages - 1)) - (pages <= finer_above_pages ? 4 : 6);
}

/// For one of these sizes: the difference to the next smaller one, in pages. A request for `n`
/// pages is rounded to `pages` if and only if the unsigned difference `pages - n` is less than
/// this.
constexpr PageCount large_step(PageCount pages) noexcept {
    return PageCount{1} << large_step_shift(pages);
}

/// Pages rounded up to the next of these sizes.
constexpr PageCount round_large(PageCount pages) noexcept {
    const PageCount step = large_step(pages);
    return (pages + step - 1) & ~(step - 1);
}

constexpr bool is_rounded_large(PageCount pages) noexcept {
    return (pages & (large_step(pages) - 1)) == 0;
}

/// The number of each of these sizes, in order and without gaps.
constexpr unsigned large_class_of(PageCount rounded_pages) noexcept {
    const unsigned shift = large_step_shift(rounded_pages);
    if (rounded_pages <= finer_above_pages) return shift * 8 + (rounded_pages >> shift);
    // 48 sizes up to 1 MiB; above, the shift begins at 3 and the step's number at 33.
    return 48 + (shift - 3) * 32 + (rounded_pages >> shift) - 32;
}

/// The size of a class.
constexpr PageCount pages_of_large_class(unsigned large_class) noexcept {
    if (large_class <= 16) return large_class;
    if (large_class <= 48) return ((large_class - 9) % 8 + 9) << ((large_class - 9) / 8);
    const unsigned above = large_class - 49;
    return (above % 32 + 33) << (above / 32 + 3);
}

inline constexpr PageCount max_large_pages = PageCount{1} << 28;
inline constexpr std::size_t max_large_bytes = max_large_pages * page_bytes;
inline constexpr unsigned large_class_count = large_class_of(max_large_pages) + 1;

namespace laws {
consteval bool rounding_wastes_at_most_an_eighth_and_classes_have_no_gaps() {
    unsigned last = 0;
    for (PageCount pages = 1; pages < 5000; ++pages) {
        const PageCount rounded = round_large(pages);
        const PageCount parts = pages > finer_above_pages ? 32 : 8;
        if (rounded < pages || (rounded - pages) * parts > pages) return false;
        if (round_large(rounded) != rounded) return false;
        if (is_rounded_large(pages) != (rounded == pages)) return false;
        const PageCount smaller = rounded - large_step(rounded);
        if (rounded - pages >= large_step(rounded) || round_large(smaller) != smaller) return false;
        const unsigned large_class = large_class_of(rounded);
        if (large_class != last && large_class != last + 1) return false;
        if (pages_of_large_class(large_class) != rounded) return false;
        last = large_class;
    }
    return pages_of_large_class(large_class_count - 1) == max_large_pages;
}
static_assert(rounding_wastes_at_most_an_eighth_and_classes_have_no_gaps());
}  // namespace laws

}  // namespace tensorpool::pages
