#pragma once

#include <algorithm>
#include <unordered_map>

#include "device/caching/stream_cache.hpp"
#include "limits/budget_request.hpp"

namespace tensorpool::device {

constexpr std::size_t index(Pool pool) noexcept {
    return static_cast<std::size_t>(pool);
}

inline FreeSet& set_of(const Slab& slab) noexcept {
    return slab.home->memory.free[index(slab.pool)];
}

inline bool is(const Block* block, BlockState state) noexcept {
    return block != nullptr && block->is(state);
}

/// Returns the pool whose grain the block's entry in the map needs. A released capture leaves slabs
/// in which large blocks begin at any small grain, with small ones between them.
inline Pool grain_of(const Block& block, Pool pool) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(block.address);
    return address % large_grain == 0 ? pool : Pool::small;
}

/// Shows a change of the memory in a stream's slabs in its record.
inline void show(const StreamCache& home, std::size_t held, std::size_t free) noexcept {
    statistics::DeviceStreamRecord* const record = home.record();
    if (record == nullptr) return;
    detail::add(record->held_bytes, held);
    detail::add(record->free_bytes, free);
}

/// Makes the slab one of another stream.
inline void set_home(Slab& slab, StreamCache& to) noexcept {
    show(*slab.home, 0 - slab.held_bytes, 0 - slab.free_bytes);
    show(to, slab.held_bytes, slab.free_bytes);
    slab.home = &to;
}

inline bool is_open(const Block* block) noexcept {
    return block != nullptr && (block->is(BlockState::free) || block->is(BlockState::hole));
}

/// Returns the free block in front of a hole, or the hole.
inline Block* begin_of_run(Block& hole) noexcept {
    return is_open(hole.previous) ? hole.previous : &hole;
}

/// Maps an address to its block's record: a tree of two levels over units of 2 MiB, and for each
/// unit in which a block was handed out a table with an entry for each grain where one may begin.
/// Lookups take no lock; changes are made under the allocator's lock. Addresses beyond 48 bits are
/// in a hash table with a lock.
///
/// The entry of a block in use does not change. It was stored before the block's address was
/// returned to the caller, so a caller that passes its block finds it, in whichever table it reads.
class BlockMap {
public:
    /// Returns the block whose grain contains the address, or nullptr. The block begins at the
    /// address or before it.
    [[gnu::always_inline]] Block* find(const void* address) const noexcept {
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
    void cover(const void* address, Pool pool) {
        const auto bits = reinterpret_cast<std::uintptr_t>(address);
        if (bits >> address_bits != 0) {
            const std::lock_guard guard(mutex_);
            beyond_.emplace(bits >> fine_shift, nullptr);
            return;
        }
        std::atomic<std::uintptr_t>& unit = unit_of(bits);
        const std::uintptr_t table = unit.load(std::memory_order_relaxed);
        const bool fine = pool == Pool::small;
        if (table == 0) unit.store(make_table(fine), std::memory_order_release);
        if (table != 0 && fine && (table & 1) == 0) refine(unit);
    }
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

    [[gnu::noinline]] Block* find_beyond(std::uintptr_t bits) const noexcept {
        const std::lock_guard guard(mutex_);
        const auto found = beyond_.find(bits >> fine_shift);
        return found == beyond_.end() ? nullptr : found->second;
    }
    void put(const std::byte* address, Block* block) noexcept {
        const auto bits = reinterpret_cast<std::uintptr_t>(address);
        if (bits >> address_bits != 0) {
            const std::lock_guard guard(mutex_);
            if (const auto found = beyond_.find(bits >> fine_shift); found != beyond_.end()) {
                found->second = block;
            }
            return;
        }
        const Leaf* const leaf = root_[bits >> leaf_shift].load(std::memory_order_relaxed);
        if (leaf == nullptr) return;  // no block was handed out there
        const std::uintptr_t table =
            leaf->units[bits >> unit_shift & (leaf_units - 1)].load(std::memory_order_relaxed);
        if (table != 0) entries(table)[index(bits, table)].store(block, std::memory_order_release);
    }
    std::atomic<std::uintptr_t>& unit_of(std::uintptr_t bits) {
        std::atomic<Leaf*>& leaf = root_[bits >> leaf_shift];
        if (leaf.load(std::memory_order_relaxed) == nullptr) {
            leaves_.push_back(std::make_unique<Leaf>());
            // Pairs with the acquire in `find`, as do the other release stores here.
            leaf.store(leaves_.back().get(), std::memory_order_release);
        }
        return leaf.load(std::memory_order_relaxed)->units[bits >> unit_shift & (leaf_units - 1)];
    }
    std::uintptr_t make_table(bool fine) {
        const std::size_t count = std::size_t{1}
                                  << (unit_shift - (fine ? fine_shift : coarse_shift));
        tables_.push_back(std::make_unique<Entry[]>(count));
        return reinterpret_cast<std::uintptr_t>(tables_.back().get()) | (fine ? 1 : 0);
    }
    /// Replaces a coarse table with a fine one. Needed if a unit has held large blocks and now
    /// holds small ones: the device handed its addresses out again, or two slabs share it, because
    /// the backend does not align them to 2 MiB.
    void refine(std::atomic<std::uintptr_t>& unit) {
        const std::uintptr_t coarse = unit.load(std::memory_order_relaxed);
        const std::uintptr_t fine = make_table(true);
        for (std::size_t i = 0; i < std::size_t{1} << (unit_shift - coarse_shift); ++i) {
            Block* const block = entries(coarse)[i].load(std::memory_order_relaxed);
            if (block == nullptr) continue;
            const auto bits = reinterpret_cast<std::uintptr_t>(block->address);
            entries(fine)[index(bits, fine)].store(block, std::memory_order_relaxed);
        }
        unit.store(fine, std::memory_order_release);
    }

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

/// Whether a free block may serve a request, given the slack of oversize blocks, which stay whole.
constexpr bool may_serve(Pool pool, std::size_t block_bytes, const Request& request) noexcept {
    return pool != Pool::oversize || block_bytes - request.rounded <= request.oversize_slack;
}

/// The slabs and the blocks that they are cut into: sets of free blocks, splitting and coalescing.
/// Makes no calls to a backend. All functions but `find` REQUIRE the allocator's lock.
///
/// No two free blocks of a slab are adjacent, nor two holes. A free block is in the set of its
/// stream and pool, and is counted in its slab's `free_bytes`.
class BlockHeap {
public:
    explicit BlockHeap(statistics::DeviceTotals& totals) noexcept : totals_(totals) {}

    [[gnu::always_inline]] Block* find(const void* address) const noexcept {
        return map_.find(address);
    }

    // Slabs --------------------------------------------------------------------------------------

    /// Adds a slab of this memory as one free block. Throws std::bad_alloc and then changes
    /// nothing.
    Slab& add_slab(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes) {
        Slab& slab = new_slab(home, pool, base, bytes);
        slab.held_bytes = bytes;
        show(home, bytes, 0);
        detail::add(totals_.slabs, 1);
        insert_free(*slab.first);
        return slab;
    }
    /// Adds a slab of these addresses as one hole.
    Slab& add_expandable(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes,
                         std::size_t granule) {
        auto granules = std::make_unique<MemoryHandle[]>(bytes / granule);
        Slab& slab = new_slab(home, pool, base, bytes);
        slab.granule = granule;
        slab.granules = std::move(granules);
        detail::add(totals_.slabs, 1);
        detail::add(totals_.address_bytes, bytes);
        insert_hole(*slab.first);
        return slab;
    }
    /// Removes the slab's record, its addresses and its block. REQUIRES: the slab is one taken
    /// block.
    void remove_slab(Slab& slab) noexcept {
        Block& block = *slab.first;
        detail::add(totals_.slabs, ~std::uint64_t{0});
        if (slab.is_expandable()) detail::add(totals_.address_bytes, 0 - slab.bytes);
        records_.give(block);
        show(*slab.home, 0 - slab.held_bytes, 0);
        slab.home->memory.slabs.erase(slab.home->memory.slabs.iterator_to(slab));
        delete &slab;
    }
    /// Moves a slab that is one free block to another stream and pool.
    void move_slab(Slab& slab, StreamCache& to, Pool pool) noexcept {
        remove_free(*slab.first);
        slab.home->memory.slabs.erase(slab.home->memory.slabs.iterator_to(slab));
        set_home(slab, to);
        slab.pool = pool;
        to.memory.slabs.push_back(slab);
        slab.first->home.store(&to, std::memory_order_relaxed);
        slab.first->stamp = idle_stamp;
        insert_free(*slab.first);
    }
    /// Moves a slab that is one hole to another stream.
    void move_range(Slab& slab, StreamCache& to) noexcept {
        slab.home->memory.slabs.erase(slab.home->memory.slabs.iterator_to(slab));
        set_home(slab, to);
        to.memory.slabs.push_back(slab);
        slab.first->home.store(&to, std::memory_order_relaxed);
    }
    /// Moves all slabs of one stream to another. REQUIRES: none of its blocks is parked, both
    /// streams' locks are held. Free blocks whose stamp the former stream has passed are idle.
    void move_slabs(StreamCache& from, StreamCache& to) noexcept {
        for (Slab& slab : from.memory.slabs) {
            FreeSet& former = set_of(slab);
            set_home(slab, to);
            // A capture has one pool for all sizes; from now on its large slabs serve large
            // requests.
            if (from.capture() != 0 && slab.bytes > small_slab_bytes) slab.pool = Pool::large;
            for (Block* block = slab.first; block != nullptr; block = block->next) {
                block->home.store(&to, std::memory_order_relaxed);
                // A block may have been freed since the device was waited for.
                const bool is_idle = from.memory.marks.has_passed(block->stamp);
                block->stamp = is_idle ? idle_stamp : to.memory.marks.stamp();
                if (!block->is(BlockState::free)) continue;
                former.erase(former.iterator_to(*block));
                set_of(slab).insert(*block);
                block->born = to.memory.searches[index(slab.pool)];
            }
        }
        to.memory.slabs.splice(to.memory.slabs.end(), from.memory.slabs);
    }

    // Blocks -------------------------------------------------------------------------------------

    /// Takes the best free block that the rules allow, split to size, marked taken and counted as
    /// held. Returns nullptr if there is none. Throws std::bad_alloc if a record is missing, and
    /// then changes nothing.
    Block* take_best(StreamCache& home, const Request& request) {
        FreeSet& set = home.memory.free[index(request.pool)];
        ++home.memory.searches[index(request.pool)];
        struct AtLeast {
            bool operator()(const Block& block, std::size_t bytes) const noexcept {
                return block.bytes < bytes;
            }
            bool operator()(std::size_t bytes, const Block& block) const noexcept {
                return bytes < block.bytes;
            }
        };
        const auto found = set.lower_bound(request.rounded, AtLeast{});
        if (found == set.end() || !may_serve(request.pool, found->bytes, request)) return nullptr;
        Block& block = *found;
        map_.cover(block.address, grain_of(block, request.pool));
        const bool splits = request.pool != Pool::oversize && block.bytes != request.rounded;
        Block* const rest = splits ? &take_record() : nullptr;
        remove_free(block);
        if (rest != nullptr) {
            cut(block, request.rounded, *rest);
            insert_free(*rest);
        }
        block.key = request.rounded;
        map_.set(block);
        totals_.hold(block.bytes);
        return &block;
    }
    /// Inserts a taken block that nothing uses any more into the set of its stream, and merges it
    /// with its free neighbours. REQUIRES: it is no longer counted as held.
    void put_back(Block& block, std::uint64_t stamp) noexcept {
        block.stamp = stamp;
        insert_free(merged(block, BlockState::free, &BlockHeap::remove_free));
    }
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
    Run take_run(Slab& slab, std::size_t bytes) {
        Run run = {&slab, nullptr, nullptr, 0, nullptr};
        std::size_t room = 0;
        for (auto hole = slab.holes.begin(); hole != slab.holes.end() && room < bytes; ++hole) {
            Block* const first = begin_of_run(*hole);
            // A run with several holes is searched from its first hole, then from the later ones.
            room = 0;
            run.first = first;
            for (Block* block = first; is_open(block) && room < bytes; block = block->next) {
                room += block->bytes;
                run.last = block;
            }
        }
        if (room < bytes) return {&slab, nullptr, nullptr, 0, nullptr};
        map_.cover(run.first->address, slab.pool);
        records_.reserve(2);
        run.spare = &take_record();
        const std::size_t in_last = bytes - (room - run.last->bytes);
        if (run.last->is(BlockState::hole)) {
            Block& last = *run.last;
            const std::size_t kept = std::min(base::align_up(in_last, slab.granule), last.bytes);
            remove_hole(last);
            if (kept != last.bytes) {
                Block& rest = take_record();
                cut(last, kept, rest);
                insert_hole(rest);
            }
            run.missing += kept;
            insert_hole(last);
        }
        for (Block* block = run.first;; block = block->next) {
            const bool hole = block->is(BlockState::hole);
            if (hole && block != run.last) run.missing += block->bytes;
            hole ? remove_hole(*block) : remove_free(*block);
            if (hole) block->set(BlockState::mapping);
            if (block == run.last) return run;
        }
    }
    /// Makes a run one taken block of `bytes`, counted as held, after all of it was mapped. The
    /// rest becomes free.
    Block* merge_run(const Run& run, std::size_t bytes) noexcept {
        Block& block = *run.first;
        count(*run.slab, run.missing, 0);
        Block* const end = run.last->next;
        const bool mapped_last = run.last->is(BlockState::mapping);
        const std::uint64_t tail_stamp = mapped_last ? idle_stamp : run.last->stamp;
        while (block.next != end) absorb_next(block);
        block.stamp = tail_stamp;
        give_tail(block, bytes, *run.spare);
        block.key = bytes;
        block.set(BlockState::taken);
        map_.set(block);
        totals_.hold(block.bytes);
        return &block;
    }
    /// Restores the run after none of it was mapped.
    void untake_run(const Run& run) noexcept {
        records_.give(*run.spare);
        // From the end, so that the part before each one is still taken when it is put back.
        for (Block* block = run.last;;) {
            Block* const before = block == run.first ? nullptr : block->previous;
            if (block->is(BlockState::mapping)) {
                make_hole(*block);
            } else {
                put_back(*block, block->stamp);
            }
            if (before == nullptr) return;
            block = before;
        }
    }

    /// Takes whole granules, at most `bytes`, from the end of a free block; the rest stays free.
    /// Returns nullptr if there are none. Throws std::bad_alloc and then changes nothing.
    Block* take_granules(Block& block, std::size_t bytes) {
        const Slab& slab = *block.slab;
        const auto offset = [&](const std::byte* address) {
            return static_cast<std::size_t>(address - slab.base);
        };
        const std::size_t first = base::align_up(offset(block.address), slab.granule);
        const std::size_t end = base::align_down(offset(block.end()), slab.granule);
        if (first >= end) return nullptr;
        const std::size_t wanted = std::min(base::align_up(bytes, slab.granule), end - first);
        const std::size_t begin = end - wanted;
        records_.reserve(2);
        remove_free(block);
        Block* middle = &block;
        if (begin != offset(block.address)) {
            middle = &take_record();
            cut(block, begin - offset(block.address), *middle);
            insert_free(block);
        }
        if (middle->bytes != wanted) {
            Block& tail = take_record();
            cut(*middle, wanted, tail);
            insert_free(tail);
        }
        return middle;
    }
    /// Makes a hole of what `take_granules` returned, after it was unmapped.
    void unmapped(Block& block) noexcept {
        count(*block.slab, 0 - block.bytes, 0);
        make_hole(block);
    }

private:
    void count(Slab& slab, std::size_t held, std::size_t free) noexcept {
        detail::add(totals_.split_bytes, 0 - slab.split_bytes());
        slab.held_bytes += held;
        slab.free_bytes += free;
        show(*slab.home, held, free);
        detail::add(totals_.split_bytes, slab.split_bytes());
    }
    void make_hole(Block& block) noexcept {
        map_.clear(block);
        insert_hole(merged(block, BlockState::hole, &BlockHeap::remove_hole));
    }
    /// Merges a block with its neighbours of this state, which `remove` takes out of their set.
    Block& merged(Block& block, BlockState state, void (BlockHeap::*remove)(Block&)) noexcept {
        if (is(block.next, state)) {
            (this->*remove)(*block.next);
            absorb_next(block);
        }
        if (!is(block.previous, state)) return block;
        Block& previous = *block.previous;
        (this->*remove)(previous);
        absorb_next(previous);
        return previous;
    }
    void give_tail(Block& block, std::size_t bytes, Block& rest) noexcept {
        if (block.bytes == bytes) {
            records_.give(rest);
            return;
        }
        cut(block, bytes, rest);
        put_back(rest, rest.stamp);
    }
    /// Cuts a block that is in no set: `rest` becomes what follows its first `bytes`.
    void cut(Block& block, std::size_t bytes, Block& rest) noexcept {
        rest.address = block.address + bytes;
        rest.bytes = block.bytes - bytes;
        rest.home.store(block.home.load(std::memory_order_relaxed), std::memory_order_relaxed);
        rest.slab = block.slab;
        rest.stamp = block.stamp;
        rest.born = block.born;
        rest.set(BlockState::taken);
        rest.previous = &block;
        rest.next = block.next;
        if (rest.next != nullptr) rest.next->previous = &rest;
        block.next = &rest;
        block.bytes = bytes;
        renumber(block);
        renumber(rest);
    }
    /// Merges the next block into this one. REQUIRES: neither is in a set.
    void absorb_next(Block& block) noexcept {
        Block& next = *block.next;
        map_.clear(next);
        block.bytes += next.bytes;
        renumber(block);
        block.stamp = std::max(block.stamp, next.stamp);
        block.next = next.next;
        if (block.next != nullptr) block.next->previous = &block;
        records_.give(next);
    }
    void insert_free(Block& block) noexcept {
        Slab& slab = *block.slab;
        block.set(BlockState::free);
        block.born = slab.home->memory.searches[index(slab.pool)];
        set_of(slab).insert(block);
        count(slab, 0, block.bytes);
        detail::add(totals_.free_blocks, 1);
    }
    void remove_free(Block& block) noexcept {
        Slab& slab = *block.slab;
        set_of(slab).erase(set_of(slab).iterator_to(block));
        count(slab, 0, 0 - block.bytes);
        detail::add(totals_.free_blocks, ~std::uint64_t{0});
        block.set(BlockState::taken);
    }
    void insert_hole(Block& block) noexcept {
        block.set(BlockState::hole);
        block.slab->holes.insert(block);
    }
    void remove_hole(Block& block) noexcept {
        block.slab->holes.erase(block.slab->holes.iterator_to(block));
        block.set(BlockState::taken);
    }
    Block& take_record() {
        Block& block = records_.take();
        block.uses = nullptr;
        block.waits = 0;
        block.page = nullptr;
        block.key = 0;
        block.requested = 0;
        return block;
    }
    /// Makes another block of a record whose size changed.
    void renumber(Block& block) noexcept {
        block.number = ++last_number_;
        block.use_count = 0;
    }
    Slab& new_slab(StreamCache& home, Pool pool, std::byte* base, std::size_t bytes) {
        auto slab = std::make_unique<Slab>();
        Block& block = take_record();
        slab->base = base;
        slab->bytes = bytes;
        slab->pool = pool;
        slab->home = &home;
        slab->first = &block;
        block.address = base;
        block.bytes = bytes;
        renumber(block);
        block.home.store(&home, std::memory_order_relaxed);
        block.slab = slab.get();
        block.previous = nullptr;
        block.next = nullptr;
        block.stamp = idle_stamp;
        block.set(BlockState::taken);
        home.memory.slabs.push_back(*slab);
        return *slab.release();
    }

    statistics::DeviceTotals& totals_;
    BlockMap map_;
    RecordPool<Block> records_;
    std::uint64_t last_number_ = 0;
};

/// Drops a stream's uses of blocks in the slabs of a cache.
inline void forget_uses(DeferredFrees& deferred, const StreamCache& slabs,
                        const StreamQueue& queue) noexcept {
    for (const Slab& slab : slabs.memory.slabs) {
        for (Block* block = slab.first; block != nullptr; block = block->next) {
            deferred.forget_uses(*block, queue);
        }
    }
}

}  // namespace tensorpool::device
