#pragma once

#include <unordered_map>

#include "device/caching/streams/stream_cache.hpp"
#include "limits/budget_request.hpp"

namespace tensorpool::device {

/// Maps an address to its block's record: a tree of two levels over units of 2 MiB, and for each
/// unit in which a block was handed out a table with an entry for each grain where one may begin.
/// Lookups take no lock; changes are made under the allocator's lock. Addresses beyond 48 bits are
/// in a hash table with a lock.
///
/// The entry of a block in use does not change. It was stored before the block's address was
/// returned to the caller, so a caller that passes its block finds it, in whichever table it reads.
class BlockMap {
public:
    BlockMap() = default;
    BlockMap(const BlockMap&) = delete;
    BlockMap& operator=(const BlockMap&) = delete;
    ~BlockMap();

    /// Returns the block whose grain contains the address, or nullptr. The block begins at the
    /// address or before it.
    Block* find(const void* address) const noexcept {
        const auto bits = reinterpret_cast<std::uintptr_t>(address);
        if (bits >> address_bits != 0) [[unlikely]]
            return find_beyond(bits);
        const Leaf* const leaf = root_[bits >> leaf_shift].load(std::memory_order_acquire);
        if (leaf == nullptr) [[unlikely]]
            return nullptr;
        const std::uintptr_t table =
            leaf->units[bits >> unit_shift & (leaf_units - 1)].load(std::memory_order_acquire);
        if (table == 0) [[unlikely]]
            return nullptr;
        return entries(table)[index(bits, table)].load(std::memory_order_acquire);
    }

    /// Makes the table needed for a block of this pool that begins at the address. Throws
    /// std::bad_alloc.
    void cover(const void* address, Pool pool);
    /// Adds or removes a block's entry. REQUIRES, to add one: `cover` was called for its address.
    void set(Block& block) noexcept { put(block.address, &block); }
    void clear(const Block& block) noexcept { put(block.address, nullptr); }

private:
    // 2^13 leaves of 2^14 units of 2 MiB.
    static constexpr unsigned address_bits = 48;
    static constexpr unsigned unit_shift = 21;
    static constexpr unsigned leaf_shift = 35;
    static constexpr std::size_t leaf_units = std::size_t{1} << (leaf_shift - unit_shift);
    static constexpr unsigned fine_shift = 9;     // small_grain
    static constexpr unsigned coarse_shift = 14;  // large_grain
    static_assert(small_grain == 1 << fine_shift && large_grain == 1 << coarse_shift);

    using Entry = std::atomic<Block*>;
    /// Each unit holds a table's address. The lowest bit is set for a fine table, which has an
    /// entry for each small grain.
    struct Leaf {
        std::atomic<std::uintptr_t> units[leaf_units] = {};
    };

    static Entry* entries(std::uintptr_t table) noexcept {
        return reinterpret_cast<Entry*>(table & ~std::uintptr_t{1});
    }
    static std::size_t index(std::uintptr_t bits, std::uintptr_t table) noexcept {
        const unsigned shift = (table & 1) != 0 ? fine_shift : coarse_shift;
        return (bits & ((std::uintptr_t{1} << unit_shift) - 1)) >> shift;
    }

    Block* find_beyond(std::uintptr_t bits) const noexcept;
    void put(const std::byte* address, Block* block) noexcept;
    std::atomic<std::uintptr_t>& unit_of(std::uintptr_t bits);
    std::uintptr_t make_table(bool fine);
    void refine(std::atomic<std::uintptr_t>& unit);

    std::atomic<Leaf*> root_[std::size_t{1} << (address_bits - leaf_shift)] = {};
    std::vector<std::unique_ptr<Leaf>> leaves_;
    std::vector<std::unique_ptr<Entry[]>> tables_;  // including replaced ones
    mutable std::mutex mutex_;                      // guards what follows
    std::unordered_map<std::uintptr_t, Block*> beyond_;
};

/// A request that has left the fast path.
struct Request {
    std::size_t bytes = 0;    // as requested by the caller
    std::size_t rounded = 0;  // round_bytes(bytes)
    Pool pool = Pool::small;
    std::size_t oversize_slack = 0;
    bool repeats = false;   // its stream repeats earlier requests: see GrowthHistory
    bool is_retry = false;  // after holders gave memory: callbacks know of it already
    limits::BudgetRequest* budget = nullptr;  // null only if it needs no new memory
};

/// The slabs and the blocks that they are cut into: sets of free blocks, splitting and coalescing.
/// Makes no calls to a backend. All functions but `find` REQUIRE the allocator's lock.
///
/// No two free blocks of a slab are adjacent, nor two holes. A free block is in the set of its
/// stream and pool, and is counted in its slab's `free_bytes`.
class BlockHeap {
public:
    explicit BlockHeap(statistics::DeviceTotals& totals) noexcept : totals_(totals) {}

    Block* find(const void* address) const noexcept { return map_.find(address); }

    // Slabs --------------------------------------------------------------------------------------

    /// Adds a slab of this memory as one free block. Throws std::bad_alloc and then changes
    /// nothing.
    Slab& add_slab(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes);
    /// Adds a slab of these addresses as one hole.
    Slab& add_expandable(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes,
                         std::size_t granule);
    /// Removes the slab's record, its addresses and its block. REQUIRES: the slab is one taken
    /// block.
    void remove_slab(Slab& slab) noexcept;
    /// Moves a slab that is one free block to another stream and pool.
    void move_slab(Slab& slab, StreamCache& to, Pool pool) noexcept;
    /// Moves a slab that is one hole to another stream.
    void move_range(Slab& slab, StreamCache& to) noexcept;
    /// Moves all slabs of one stream to another. REQUIRES: none of its blocks is parked, both
    /// streams' locks are held. Free blocks whose stamp the former stream has passed are idle.
    void move_slabs(StreamCache& from, StreamCache& to) noexcept;

    // Blocks -------------------------------------------------------------------------------------

    /// Takes the best free block that the rules allow, split to size, marked taken and counted as
    /// held. Returns nullptr if there is none. Throws std::bad_alloc if a record is missing, and
    /// then changes nothing.
    Block* take_best(StreamCache& home, const Request& request);
    /// Inserts a taken block that nothing uses any more into the set of its stream, and merges it
    /// with its free neighbours. REQUIRES: it is no longer counted as held.
    void put_back(Block& block, std::uint64_t stamp) noexcept;
    /// Takes out a free block that is a whole slab, so that the caller can release it to the
    /// device. Its address is removed from the map, because the device may hand the address out
    /// again before `remove_slab`.
    void take_out(Block& block) noexcept {
        remove_free(block);
        map_.clear(block);
    }

    // Parts of expandable slabs ------------------------------------------------------------------

    /// A run for `bytes`: free blocks and holes from `first` to `last`, taken as they are.
    /// `missing` bytes of them are holes, in whole granules.
    struct Run {
        Slab* slab = nullptr;
        Block* first = nullptr;
        Block* last = nullptr;
        std::size_t missing = 0;
        Block* spare = nullptr;  // a record for the part beyond `bytes`
    };
    /// Takes the lowest such run of a slab; `first` is nullptr if there is none. Throws
    /// std::bad_alloc and then changes nothing.
    Run take_run(Slab& slab, std::size_t bytes);
    /// Makes a run one taken block of `bytes`, counted as held, after all of it was mapped. The
    /// rest becomes free.
    Block* merge_run(const Run& run, std::size_t bytes) noexcept;
    /// Restores the run after none of it was mapped.
    void untake_run(const Run& run) noexcept;

    /// Takes whole granules, at most `bytes`, from the end of a free block; the rest stays free.
    /// Returns nullptr if there are none. Throws std::bad_alloc and then changes nothing.
    Block* take_granules(Block& block, std::size_t bytes);
    /// Makes a hole of what `take_granules` returned, after it was unmapped.
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
    /// Makes another block of a record whose size changed.
    void renumber(Block& block) noexcept {
        block.number = ++last_number_;
        block.use_count = 0;
    }
    Slab& new_slab(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes,
                   BlockState state);

    statistics::DeviceTotals& totals_;
    BlockMap map_;
    RecordPool<Block> records_;
    std::uint64_t last_number_ = 0;
};

/// Whether a free block may serve a request, given the slack of oversize blocks, which stay whole.
constexpr bool may_serve(Pool pool, std::size_t block_bytes, const Request& request) noexcept {
    return pool != Pool::oversize || block_bytes - request.rounded <= request.oversize_slack;
}

/// Drops a stream's uses of blocks in the slabs of a cache.
void forget_uses(DeferredFrees& deferred, const StreamCache& slabs,
                 const StreamQueue& queue) noexcept;

}  // namespace tensorpool::device
