#include "arena/release_history.hpp"

#include <algorithm>
#include <new>

namespace tensorpool::arena {

void ReleaseHistory::finish_release(std::size_t offset) noexcept {
    const std::uint64_t sequence = sequence_.load(std::memory_order_relaxed) + 1;
    const std::uint64_t number = sequence / 2;
    while (!releases_.empty() && releases_.back().offset >= offset) releases_.pop_back();
    try {
        releases_.push_back({offset, number});
    } catch (const std::bad_alloc&) {
        // Without memory for a record, this release extends the previous one: a mark made between
        // the two is then reported as stale although it is valid. The opposite error would be
        // worse.
        releases_.back().number = number;
    }
    sequence_.store(sequence, std::memory_order_release);
}

bool ReleaseHistory::went_below(std::size_t offset, std::uint64_t releases) const noexcept {
    const auto later = std::upper_bound(
        releases_.begin(), releases_.end(), releases,
        [](std::uint64_t number, const Release& release) { return number < release.number; });
    return later != releases_.end() && later->offset < offset;
}

}  // namespace tensorpool::arena
