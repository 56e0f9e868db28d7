#pragma once

#include <cstddef>
#include <cstdint>

#include "blocks/loaded_blocks.hpp"

namespace tensorpool::blocks {

/// The two magazines of one bucket in a thread's cache, loaded and spare, and how many blocks they
/// may hold. Not thread-safe: Cache's lock guards it.
class MagazinePair {
public:
    /// Begins without magazines, and with the bucket's first capacity.
    void begin(Bucket& bucket, detail::LoadedMagazine& view,
               detail::BucketCounters& counted) noexcept;

    LoadedBlocks loaded;

    // Changed by ParkedRoom.
    std::uint16_t capacity = 0;  // of a magazine
    // The most blocks that the loaded magazine may hold. It exceeds `capacity` after a fuller
    // magazine of another thread came from the depot.
    std::uint16_t largest = 0;
    bool may_park = false;       // room for `capacity` and `largest` blocks was reserved
    bool went_to_depot = false;  // since the capacity last changed
    /// The bytes for which both magazines have room.
    std::size_t room_bytes() const noexcept {
        return (capacity + largest) * loaded.bucket().traits.block_bytes;
    }
    /// The blocks that may be kept.
    unsigned usable_capacity() const noexcept { return may_park ? capacity : 0; }

    /// Returns whether `block` lies in one of the magazines.
    bool parks(const void* block) const noexcept;
    /// Swaps the magazines if the spare has blocks. Returns whether it did.
    bool load_full_spare() noexcept;
    /// Swaps the magazines if there are two and the spare has no blocks. Returns whether it did.
    bool load_empty_spare() noexcept;
    /// Loads `magazine`. The loaded one becomes the spare, and the spare goes to the depot.
    void load(Magazine& magazine) noexcept;
    /// Loads a magazine without blocks from the depot, or the spare after its blocks went home.
    /// Returns false if there is none. REQUIRES: both magazines are full or do not exist.
    bool load_empty(pages::Changes& changes) noexcept;
    /// Returns the loaded magazine; loads one without blocks if there is none. Returns nullptr if
    /// memory is short.
    Magazine* loaded_or_empty() noexcept;
    /// Gives both magazines with their blocks to the depot. REQUIRES: no block is exposed.
    void give_back() noexcept;
    /// Returns all blocks to their spans, on another thread. Returns the bytes of those that were
    /// exposed, which the caller refunds. REQUIRES: `loaded` is closed.
    std::size_t take_back(pages::Changes& changes) noexcept;

    /// Returns whether the thread made no call for the bucket since the previous query.
    bool was_idle() noexcept;

private:
    void swap() noexcept;
    void give(Magazine& magazine) noexcept;
    void bring_home(const Magazine& magazine, pages::Changes& changes) noexcept;

    Magazine* spare_ = nullptr;
    std::uint64_t seen_ = 0;  // operations at the last `was_idle`
};

}  // namespace tensorpool::blocks
