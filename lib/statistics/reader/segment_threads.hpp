#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "statistics/segment/segment_image.hpp"

namespace tensorpool::statistics {

/// The places of a pool's slots.
using PoolSlots = std::span<const std::size_t>;

/// Which slots are which pool's. Looks at each slot once, whatever it says.
class SlotsByPool {
public:
    explicit SlotsByPool(const SegmentImage& image);
    /// Each slot is given once: where several pools have one number, they are the first one's. So
    /// nobody who overwrites a segment makes us sum them for each.
    PoolSlots take(std::uint64_t pool) noexcept;

private:
    std::vector<std::uint64_t> pools_;  // for each place below, in ascending order
    std::vector<std::size_t> places_;
    std::vector<bool> taken_;
};

/// Adds an element for each thread of a pool, and one whose number is 0 for what threads counted
/// that have ended or have no slot, if that is anything.
void add_threads(std::vector<ThreadStatistics>& threads, const SegmentImage& image,
                 const PoolRecord& pool, PoolSlots slots);

}  // namespace tensorpool::statistics
