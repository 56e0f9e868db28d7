#include "pages/heap/folio_choice.hpp"

#include <algorithm>

namespace tensorpool::pages {
namespace {

constinit FolioChoice the_folio_choice(platform::folio_sizes);

}  // namespace

FolioChoice& folio_choice() noexcept {
    return the_folio_choice;
}

Folio FolioChoice::for_granule(Advice advice) noexcept {
    if (!has(has_huge)) return for_part();
    const std::uint32_t left = paused_.load(std::memory_order_relaxed);
    if (left == 0) return Folio::huge;
    // If two threads count one granule at the same time, the pause is one granule longer.
    paused_.store(left - 1, std::memory_order_relaxed);
    if (!has(has_medium)) return Folio::small;
    if (advice == Advice::temporary) return Folio::medium;
    if (split_.load(std::memory_order_relaxed) >= max_split) return Folio::small;
    split_.fetch_add(1, std::memory_order_relaxed);
    return Folio::medium;
}

Folio FolioChoice::for_part() noexcept {
    return has(has_medium) ? Folio::medium : Folio::small;
}

void FolioChoice::note(Folio folio, std::uint64_t ns) noexcept {
    const std::uint64_t other = other_ns_.load(std::memory_order_relaxed);
    if (folio != Folio::huge) {
        other_ns_.store((3 * other + ns) / 4, std::memory_order_relaxed);
    } else if (ns <= 2 * other) {
        next_pause_.store(first_pause, std::memory_order_relaxed);
    } else {
        const std::uint32_t pause = next_pause_.load(std::memory_order_relaxed);
        paused_.store(pause, std::memory_order_relaxed);
        next_pause_.store(std::min(2 * pause, longest_pause), std::memory_order_relaxed);
    }
}

bool FolioChoice::has(unsigned what) noexcept {
    unsigned known = known_.load(std::memory_order_relaxed);
    if (known == 0) known = look();
    return (known & what) != 0;
}

// Medium pages always cost a quarter of small ones. If the system has them, a huge page is tried
// only after the first pause.
unsigned FolioChoice::look() noexcept {
    const platform::FolioSizes sizes = sizes_of_system_();
    if (sizes.medium != 0) paused_.store(first_pause, std::memory_order_relaxed);
    const unsigned known =
        looked | (sizes.medium != 0 ? has_medium : 0U) | (sizes.huge ? has_huge : 0U);
    known_.store(known, std::memory_order_relaxed);
    return known;
}

}  // namespace tensorpool::pages
