#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include <tensorpool/pooled_allocation.hpp>

#include "rest/map/map_entry.hpp"
#include "rest/stash_words.hpp"

namespace tensorpool::stashing {

/// A tensor that goes to rest: a busy entry that must be encoded, or the memory of one whose
/// encoding was kept.
struct TakenTensor {
    std::shared_ptr<MapEntry> entry;
    PooledAllocation tensor;
};

/// The attached entries of a map by age, their sums, and the moves that are under way. The lock of
/// the map guards it.
///
/// Invariants: an attached entry is listed as in memory or as compressed if a thread may put it to
/// rest or spill it: it is neither busy nor pinned. It is listed as kept if it is in memory, its
/// encoding is kept in memory as well, and it is not busy. No entry that is pinned for writing has
/// an encoding.
class ListedEntries {
public:
    explicit ListedEntries(statistics::StashTotals& totals) noexcept : totals_(totals) {}

    void attach(MapEntry& entry) noexcept;
    void detach(MapEntry& entry) noexcept;
    /// Puts an entry at the end of the list where it belongs now, if any.
    void list(MapEntry& entry) noexcept;

    // Each makes the oldest entry of a list busy and returns it, or nullptr if there is none.
    std::shared_ptr<MapEntry> take_oldest_compressed() noexcept { return take_oldest(compressed_); }
    std::shared_ptr<MapEntry> take_oldest_kept() noexcept { return take_oldest(kept_); }
    /// Takes the oldest tensor in memory. Takes nothing if there is none.
    TakenTensor take_oldest_in_memory() noexcept;
    /// Takes the encoding, if any, of an entry in memory that is not busy.
    std::unique_ptr<StashState> take_kept(MapEntry& entry) noexcept;
    /// Ends the move of an entry, and counts it as it is now.
    void finish(MapEntry& entry, const EntrySizes& sizes) noexcept;
    void wait_until_idle(const MapEntry& entry, std::unique_lock<std::mutex>& lock) const noexcept;

    /// Returns the compressed bytes of tensors that are also in memory.
    std::size_t kept_bytes() const noexcept { return kept_bytes_; }

private:
    static std::shared_ptr<MapEntry> take_oldest(EntryList& list) noexcept;
    void count(MapEntry& entry, const EntrySizes& sizes) noexcept;

    statistics::StashTotals& totals_;
    EntryList in_memory_{&MapEntry::by_use};
    EntryList compressed_{&MapEntry::by_use};
    EntryList kept_{&MapEntry::as_kept};
    std::size_t kept_bytes_ = 0;
    // Counts ended moves; threads that wait for one wait for its change.
    std::atomic<unsigned> moves_ = 0;
};

}  // namespace tensorpool::stashing
