#pragma once

#include <bit>
#include <cstddef>

#include "pages/page_map.hpp"

namespace tensorpool::pages {

/// Sizes of large blocks, in pages: eight to each doubling, so at most an eighth is rounding, and a
/// tensor of a slightly different size finds the block of the last one.
inline constexpr unsigned large_steps = 8;

/// Pages rounded up to the next of these sizes.
constexpr PageCount round_large(PageCount pages) noexcept {
    if (pages <= 2 * large_steps) return pages;
    const unsigned shift = static_cast<unsigned>(std::bit_width(pages - 1)) - 4;
    const PageCount step = PageCount{1} << shift;
    return (pages + step - 1) & ~(step - 1);
}

/// A number for each of these sizes, without gaps from `2 * large_steps` pages on.
constexpr unsigned large_class_of(PageCount rounded_pages) noexcept {
    if (rounded_pages <= 2 * large_steps) return rounded_pages;
    const unsigned shift = static_cast<unsigned>(std::bit_width(rounded_pages - 1)) - 4;
    return shift * large_steps + (rounded_pages >> shift);
}

inline constexpr PageCount most_large_pages = PageCount{1} << 28;
inline constexpr std::size_t most_large_bytes = most_large_pages * page_bytes;
inline constexpr unsigned large_class_count = large_class_of(most_large_pages) + 1;

namespace laws {
consteval bool rounding_wastes_at_most_an_eighth_and_classes_have_no_gaps() {
    unsigned last = large_class_of(round_large(1));
    for (PageCount pages = 2; pages < 5000; ++pages) {
        const PageCount rounded = round_large(pages);
        if (rounded < pages || (rounded - pages) * large_steps > pages) return false;
        if (round_large(rounded) != rounded) return false;
        const unsigned size_class = large_class_of(rounded);
        if (size_class != last && size_class != last + 1) return false;
        last = size_class;
    }
    return true;
}
static_assert(rounding_wastes_at_most_an_eighth_and_classes_have_no_gaps());
}  // namespace laws

}  // namespace tensorpool::pages
