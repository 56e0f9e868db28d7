#pragma once

#include <cstddef>

#include "device/caching/blocks/block.hpp"
#include "device/caching/blocks/block_map.hpp"
#include "device/caching/blocks/slab.hpp"
#include "device/caching/streams/stream_cache.hpp"
#include "device/deferral/record_pool.hpp"
#include "statistics/metrics/device_metrics.hpp"

namespace tensorpool::device {

/// What is asked for, once a request left the fast path.
struct Request {
    std::size_t bytes = 0;    // as the caller said
    std::size_t rounded = 0;  // round_bytes(bytes)
    Pool pool = Pool::small;
    std::size_t oversize_slack = 0;
    bool repeats = false;  // its stream does what it did before: see GrowthHistory
};

/// The slabs, and the blocks that they are cut into: sets of free ones, split and coalesced. Knows
/// no backend. Under the allocator's lock, all of it but `find`.
///
/// No two free blocks of a slab touch, nor two holes. What is free lies in the set of its stream
/// and pool, and is counted in its slab's `free_bytes`.
class BlockHeap {
public:
    explicit BlockHeap(statistics::DeviceTotals& totals) noexcept : totals_(totals) {}

    Block* find(const void* address) const noexcept { return map_.find(address); }

    // Slabs --------------------------------------------------------------------------------------

    /// A slab of this memory, one free block. Throws std::bad_alloc; then nothing has changed.
    Slab& add_slab(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes);
    /// A slab of these addresses, one hole.
    Slab& add_expandable(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes,
                         std::size_t granule);
    /// Its record and block go. REQUIRES: it is one taken block.
    void remove_slab(Slab& slab) noexcept;
    /// A slab that is one free block becomes another stream's, and of another pool.
    void move_slab(Slab& slab, StreamCache& to, Pool pool);
    /// A slab that is one hole becomes another stream's.
    void move_range(Slab& slab, StreamCache& to) noexcept;
    /// All that is one stream's is another's. REQUIRES: nothing of it is parked, both streams'
    /// locks are held, and no work of the former stream is under way.
    void move_slabs(StreamCache& from, StreamCache& to) noexcept;

    // Blocks -------------------------------------------------------------------------------------

    /// The best free block that the rules allow, split; marked taken and counted as held. nullptr
    /// if there is none. Throws std::bad_alloc where a record is missing; then nothing has changed.
    Block* take_best(StreamCache& home, const Request& request);
    /// A taken block, freed by everybody, comes into the set of its stream and joins its
    /// neighbours. Counted as no more held where it was.
    void put_back(Block& block, std::uint64_t stamp) noexcept;
    /// A free block that is a whole slab is the caller's to give back to the device. Nothing is
    /// known at its address any more: the device may hand that out again before `remove_slab`.
    void take_out(Block& block) noexcept {
        remove_free(block);
        map_.clear(block);
    }

    // Parts of expandable slabs ------------------------------------------------------------------

    /// A place for `bytes`: blocks from `first` on, free ones and holes, that have been taken as
    /// they are. `missing` bytes of them are holes: whole granules.
    struct Place {
        Slab* slab = nullptr;
        Block* first = nullptr;
        Block* last = nullptr;
        std::size_t missing = 0;
        Block* spare = nullptr;  // a record for what `bytes` leave over
    };
    /// The lowest such place of a slab; `first` is nullptr where there is none. Throws
    /// std::bad_alloc; then nothing has changed.
    Place take_place(Slab& slab, std::size_t bytes);
    /// All of it is mapped: one block of `bytes`, taken and counted as held; the rest is free.
    Block* merge_place(const Place& place, std::size_t bytes) noexcept;
    /// It is as it was: nothing of it was mapped.
    void untake_place(const Place& place) noexcept;

    /// Whole granules at the end of a free block, `bytes` at most: taken, the rest stays free.
    /// nullptr if there are none. Throws std::bad_alloc; then nothing has changed.
    Block* take_granules(Block& block, std::size_t bytes);
    /// What `take_granules` gave is unmapped.
    void unmapped(Block& block) noexcept {
        count(*block.slab, 0 - block.bytes, 0);
        make_hole(block);
    }

private:
    void count(Slab& slab, std::size_t held, std::size_t free) noexcept;
    void make_hole(Block& block) noexcept;
    void give_tail(Block& block, std::size_t bytes, Block& rest) noexcept;
    void cut(Block& block, std::size_t bytes, Block& rest) noexcept;
    void absorb_next(Block& block) noexcept;
    void insert_free(Block& block) noexcept;
    void remove_free(Block& block) noexcept;
    void insert_hole(Block& block) noexcept;
    void remove_hole(Block& block) noexcept;
    Block& take_record();
    Slab& new_slab(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes,
                   BlockState state);

    statistics::DeviceTotals& totals_;
    BlockMap map_;
    RecordPool<Block> records_;
};

/// Of a free block: whether a request may have it, and whether what it does not need stays free.
constexpr bool may_serve(Pool pool, std::size_t block_bytes, const Request& request) noexcept {
    return pool != Pool::oversize || block_bytes - request.rounded <= request.oversize_slack;
}

}  // namespace tensorpool::device
