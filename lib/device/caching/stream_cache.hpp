#pragma once

#include <thread>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>

#include "device/deferral/deferred_frees.hpp"

namespace tensorpool::device {

// The sizes of blocks and slabs are in bytes.

inline constexpr std::size_t kib = 1024;
inline constexpr std::size_t mib = 1024 * kib;

/// Granularity of small blocks, which begin and end at multiples of it within their slab.
inline constexpr std::size_t small_grain = 512;
inline constexpr std::size_t small_limit = mib;
/// Larger sizes are rounded up to a 64th of the power of two below them, so by less than a 64th.
inline constexpr unsigned large_steps = 64;
inline constexpr std::size_t large_grain = small_limit / large_steps;

/// Sizes of slabs that are not expandable.
inline constexpr std::size_t small_slab_bytes = 2 * mib;
inline constexpr std::size_t large_slab_bytes = 32 * mib;
/// Sizes of slabs for requests from `xlarge_request_bytes` up to half of the slab, on devices of at
/// least `large_device_bytes`: without and with unified memory. Source: PyTorch's Metal allocator
/// (MPSAllocator.h).
inline constexpr std::size_t xlarge_slab_bytes = 128 * mib;
inline constexpr std::size_t xlarge_unified_slab_bytes = 1024 * mib;
inline constexpr std::size_t xlarge_request_bytes = 10 * mib;
/// Slab sizes are multiples of this. Expandable slabs grow by this, or by the device's granularity
/// if that is larger.
inline constexpr std::size_t slab_step = 2 * mib;
/// Expandable slabs of large blocks grow by this on devices of at least `large_device_bytes`: ten
/// pieces of 2 MiB take ten times as long as one of 20 MiB. Source: PyTorch's pull request 96995. A
/// power of two, as all granularities are.
inline constexpr std::size_t large_granule_bytes = 32 * mib;
inline constexpr std::size_t large_device_bytes = 4096 * mib;

/// The limit of a request. Sums of two such sizes do not overflow.
inline constexpr std::size_t max_bytes = std::size_t{1} << 62;

/// The set that a free block belongs to. Each block of `shareable` is a slab that other processes
/// may have opened, so none is handed out twice.
enum class Pool : std::uint8_t { small, large, oversize, shareable };
inline constexpr std::size_t pool_count = 4;

/// Returns the size of the block for a request; 0 for 0. REQUIRES: `bytes` is at most `max_bytes`.
constexpr std::size_t round_bytes(std::size_t bytes) noexcept {
    const std::size_t grain =
        bytes <= small_limit ? small_grain : std::bit_floor(bytes) / large_steps;
    return base::align_up(bytes, grain);
}

static_assert(round_bytes(0) == 0 && round_bytes(1) == 512 && round_bytes(512) == 512);
static_assert(round_bytes(small_limit) == small_limit);
static_assert(round_bytes(small_limit + 1) == small_limit + large_grain);
static_assert(round_bytes(128 * mib + 1) == 130 * mib && round_bytes(100 * mib) == 100 * mib);

class StreamCache;
struct Slab;
struct ScalarPage;

/// A range of a slab: a block in use, a free block, or a hole. The blocks of a slab are adjacent
/// and cover it. Records are stored outside the slab and are kept until the allocator is destroyed,
/// so reading the record of a block that has just been merged or freed is safe.
struct alignas(64) Block : DeferrableBlock {
    // These share a cache line with the base class: the fields that the fast path reads and writes.
    std::size_t key = 0;        // rounded size of the request: `bytes`, or less if oversize
    std::size_t requested = 0;  // for a block in use
    // Changed under both the stream's and the allocator's lock. A thread that read it to find the
    // stream's lock must read it again under that lock.
    std::atomic<StreamCache*> home = nullptr;
    Block* link = nullptr;  // next block in a bin, or in a list of records

    Slab* slab = nullptr;       // from here on: guarded by the allocator's lock
    Block* previous = nullptr;  // by address
    Block* next = nullptr;
    std::uint64_t stamp = 0;  // work of the stream that may still use it: see StreamMarks
    std::uint64_t born = 0;   // of a free block: searches of its set before it was inserted
    ScalarPage* page = nullptr;
    std::uint64_t number = 0;     // of the block, from when it got its size
    std::uint64_t use_count = 0;  // of its allocations since. Guarded by the stream's lock
    boost::intrusive::set_member_hook<boost::intrusive::optimize_size<true>> hook;  // in its set
};

/// Whether `block`, which may be null, is one in use that begins at `address`.
inline bool is_in_use(const Block* block, const void* address) noexcept {
    return block != nullptr && block->address == address &&
           (block->is(BlockState::in_use) || block->is(BlockState::shared));
}

struct BySizeThenAddress {
    bool operator()(const Block& one, const Block& other) const noexcept {
        return one.bytes != other.bytes ? one.bytes < other.bytes : one.address < other.address;
    }
};
struct ByAddress {
    bool operator()(const Block& one, const Block& other) const noexcept {
        return one.address < other.address;
    }
};
template <class Order>
using BlockSet =
    boost::intrusive::set<Block,
                          boost::intrusive::member_hook<Block, decltype(Block::hook), &Block::hook>,
                          boost::intrusive::compare<Order>>;
using FreeSet = BlockSet<BySizeThenAddress>;
using HoleSet = BlockSet<ByAddress>;

/// Memory that the backend returned in one piece, or an "expandable" range of addresses into which
/// memory is mapped granule by granule. All its blocks belong to one stream. Guarded by the
/// allocator's lock.
struct Slab : boost::intrusive::list_base_hook<> {
    std::byte* base = nullptr;
    std::size_t bytes = 0;       // size of the address range
    std::size_t held_bytes = 0;  // memory: all of it, or the mapped part
    std::size_t free_bytes = 0;  // the part of `held_bytes` in the sets
    Pool pool = Pool::small;
    StreamCache* home = nullptr;
    Block* first = nullptr;
    // For expandable slabs: the handle of each granule, nullptr if nothing is mapped. Elements
    // under a `taken` block belong to that block's thread, others are guarded by the allocator's
    // lock.
    std::unique_ptr<MemoryHandle[]> granules;
    std::size_t granule = 0;
    HoleSet holes;

    bool is_expandable() const noexcept { return granule != 0; }
    bool is_empty_range() const noexcept {
        return is_expandable() && first->is(BlockState::hole) && first->bytes == bytes;
    }
    bool is_all_free() const noexcept { return free_bytes == held_bytes; }
    /// Free bytes that cannot be released in one piece.
    std::size_t split_bytes() const noexcept { return is_all_free() ? 0 : free_bytes; }
    MemoryHandle& granule_at(const std::byte* address) const noexcept {
        return granules[static_cast<std::size_t>(address - base) / granule];
    }
};

using SlabList = boost::intrusive::list<Slab>;

/// Maps a stream's handle to its cache. Lookups take no lock; changes are made under the
/// allocator's lock. Entries are never removed. Outgrown tables are kept, because a thread may be
/// reading them.
class StreamTable {
public:
    /// Throws std::bad_alloc.
    StreamTable() {
        constexpr std::size_t first_size = 64;  // filled to at most half: 32 streams
        tables_.push_back(std::make_unique<Table>(first_size));
        table_.store(tables_.back().get(), std::memory_order_release);
    }

    [[gnu::always_inline]] StreamCache* find(StreamHandle stream) const noexcept {
        // Acquire, here and below: pairs with the release stores in `add`.
        const Table* const table = table_.load(std::memory_order_acquire);
        const std::uintptr_t key = key_of(stream);
        for (std::size_t at = hash(key);; ++at) {
            const Entry& entry = table->entries[at & table->mask];
            const std::uintptr_t found = entry.key.load(std::memory_order_acquire);
            if (found == key) return entry.cache.load(std::memory_order_acquire);
            if (found == 0) return nullptr;
        }
    }

    /// REQUIRES: the stream is not in the table. Throws std::bad_alloc and then changes nothing.
    void add(StreamHandle stream, StreamCache& cache) {
        Table& table = *tables_.back();
        if ((count_ + 1) * 2 <= table.mask + 1) {
            put(table, key_of(stream), &cache);
        } else {
            auto larger = std::make_unique<Table>((table.mask + 1) * 2);
            for (std::size_t i = 0; i <= table.mask; ++i) {
                const Entry& entry = table.entries[i];
                const std::uintptr_t key = entry.key.load(std::memory_order_relaxed);
                if (key != 0) put(*larger, key, entry.cache.load(std::memory_order_relaxed));
            }
            put(*larger, key_of(stream), &cache);
            tables_.push_back(std::move(larger));
            table_.store(tables_.back().get(), std::memory_order_release);
        }
        ++count_;
    }
    /// Sets another cache for a stream. REQUIRES: the stream is in the table.
    void replace(StreamHandle stream, StreamCache& cache) noexcept {
        Table& table = *tables_.back();
        std::size_t at = hash(key_of(stream));
        while (table.entries[at & table.mask].key.load(std::memory_order_relaxed) !=
               key_of(stream)) {
            ++at;
        }
        table.entries[at & table.mask].cache.store(&cache, std::memory_order_release);
    }

private:
    struct Entry {
        std::atomic<std::uintptr_t> key = 0;  // 0: empty. Stored after `cache`
        std::atomic<StreamCache*> cache = nullptr;
    };
    struct Table {
        explicit Table(std::size_t size) : mask(size - 1), entries(new Entry[size]) {}
        std::size_t mask;
        std::unique_ptr<Entry[]> entries;
    };

    // Never 0, because no backend uses the highest address as a handle.
    static std::uintptr_t key_of(StreamHandle stream) noexcept {
        return reinterpret_cast<std::uintptr_t>(stream) + 1;
    }
    static std::size_t hash(std::uintptr_t key) noexcept {
        return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15u) >> 32);
    }
    static void put(Table& table, std::uintptr_t key, StreamCache* cache) noexcept {
        std::size_t at = hash(key);
        while (table.entries[at & table.mask].key.load(std::memory_order_relaxed) != 0) ++at;
        Entry& entry = table.entries[at & table.mask];
        entry.cache.store(cache, std::memory_order_release);
        entry.key.store(key, std::memory_order_release);
    }

    std::atomic<const Table*> table_;
    std::vector<std::unique_ptr<Table>> tables_;  // the last one is current
    std::size_t count_ = 0;
};

/// Detects a stream that repeats earlier requests, as a program that runs the same step again and
/// again does. Memory released to the device would then only be allocated again. The class compares
/// the last four requests that no free block could serve with earlier sequences of four. It keeps
/// 1,024 hashes; a newer sequence replaces an older one. Guarded by the allocator's lock.
class GrowthHistory {
public:
    /// Adds a request by its rounded size. Returns whether the last four requests were seen before.
    bool repeats(std::size_t bytes) noexcept {
        std::uint64_t hash = 0;
        for (std::size_t i = 0; i + 1 < last_.size(); ++i) {
            last_[i] = last_[i + 1];
            hash = mixed(hash, last_[i]);
        }
        last_.back() = bytes;
        hash = mixed(hash, bytes) | 1;  // never 0, which marks an empty entry
        std::uint64_t& entry = seen_[hash >> entry_shift];
        const bool was_seen = entry == hash;
        entry = hash;
        return was_seen;
    }

private:
    static constexpr unsigned entry_shift = 54;

    static std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
        return std::rotl((hash ^ value) * 0x9e3779b97f4a7c15u, 23) * 0xbf58476d1ce4e5b9u;
    }

    std::array<std::size_t, 4> last_ = {};
    std::array<std::uint64_t, std::size_t{1} << (64 - entry_shift)> seen_ = {};
};

/// How far one stream is known to have progressed. This distinguishes free memory that no work uses
/// from memory that its stream may still be using. Guarded by the allocator's lock.
///
/// Blocks inserted into the sets are stamped with the number of the next mark. A mark is an event
/// recorded on the stream. When it is reached, all work submitted for blocks with stamps up to its
/// number is done.
class StreamMarks {
public:
    std::uint64_t stamp() const noexcept { return next_; }
    bool has_passed(std::uint64_t stamp) const noexcept { return stamp <= passed_; }

    /// The stream has done all work submitted so far.
    void pass_all() noexcept { passed_ = next_++; }
    /// The caller is about to wait for all work submitted so far, and calls `pass` after that.
    std::uint64_t begin_wait() noexcept { return next_++; }
    void pass(std::uint64_t number) noexcept {
        if (passed_ < number) passed_ = number;
    }
    bool is_waiting() const noexcept { return event_ != nullptr; }
    /// Sets an event that was just recorded on the stream.
    void wait_for(EventHandle event) noexcept {
        event_ = event;
        waiting_for_ = next_++;
    }
    EventHandle event() const noexcept { return event_; }
    /// The event was reached, or the stream has done all work. Returns the event to the caller.
    EventHandle reach() noexcept {
        pass(waiting_for_);
        const EventHandle event = event_;
        event_ = nullptr;
        return event;
    }

private:
    std::uint64_t next_ = 1;
    std::uint64_t passed_ = 0;
    std::uint64_t waiting_for_ = 0;
    EventHandle event_ = nullptr;
};

/// The stamp of memory that no pending work uses.
inline constexpr std::uint64_t idle_stamp = 0;

/// A lock for sections of some ten instructions. Locked by one exchange, unlocked by a plain store.
class SpinLock {
public:
    [[gnu::always_inline]] void lock() noexcept {
        // Acquire pairs with the release in `unlock`: the writes of the last holder are visible.
        while (taken_.exchange(true, std::memory_order_acquire)) [[unlikely]] wait();
    }
    void unlock() noexcept { taken_.store(false, std::memory_order_release); }

private:
    /// Waits until the lock looks free. Out of line: an inlined call would cost the fast path
    /// registers.
    [[gnu::noinline]] void wait() const noexcept {
        // Yields at once: the holder of the lock may have been preempted.
        while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
    }

    std::atomic<bool> taken_ = false;
};

/// One stream's part of an allocator: bins of recently freed blocks, under a lock of their own, and
/// the slower parts under the allocator's lock. A capture has its own cache for each of its
/// streams. Caches live as long as the allocator; the cache of an ended stream serves a later one.
class alignas(64) StreamCache {
public:
    StreamCache(StreamHandle stream, std::uint64_t capture) noexcept : capture_(capture) {
        memory.queue.stream = stream;
    }

    /// Returns the most recently freed block of exactly this rounded size, or nullptr if there is
    /// none near the top of its bin.
    [[gnu::always_inline]] Block* take(std::size_t rounded, std::size_t requested) noexcept {
        const std::lock_guard guard(lock_);
        Block** at = &bins_[bin_of(rounded)];
        for (unsigned looks = 0; *at != nullptr && looks < max_looks; ++looks) {
            Block* const block = *at;
            if (block->key == rounded) {
                *at = block->link;
                count_hit(*block, requested);
                return block;
            }
            at = &block->link;
        }
        return nullptr;
    }

    enum class Put : std::uint8_t { parked, elsewhere, refused };
    /// Parks a block in use. Returns `elsewhere` if it belongs to another stream by now, or
    /// `refused` if it is not in use or other streams use it too.
    [[gnu::always_inline]] Put put(Block& block) noexcept {
        const std::lock_guard guard(lock_);
        if (block.home.load(std::memory_order_relaxed) != this) [[unlikely]]
            return Put::elsewhere;
        if (!block.is(BlockState::in_use)) [[unlikely]]
            return Put::refused;
        count_free(block.requested, block.bytes);
        park(block);
        return Put::parked;
    }

    // From here up to `take_parked`: REQUIRES that the stream's lock is held.
    void lock() noexcept { lock_.lock(); }
    void unlock() noexcept { lock_.unlock(); }

    /// Counts a block from the sets that is handed to a caller.
    [[gnu::always_inline]] void count_new(Block& block, std::size_t requested) noexcept {
        block.requested = requested;
        ++block.use_count;
        block.set(BlockState::in_use);
        count_allocation(requested, block.bytes);
    }
    [[gnu::always_inline]] void count_allocation(std::size_t requested,
                                                 std::size_t bytes) noexcept {
        device::count_allocation(*counters_, requested, bytes);
    }
    void count_free(std::size_t requested, std::size_t bytes) noexcept {
        device::count_free(*counters_, requested, bytes);
    }
    void park(Block& block) noexcept {
        block.set(BlockState::parked);
        detail::add(counters_->parked_bytes, block.bytes);
        Block*& bin = bins_[bin_of(block.key)];
        block.link = bin;
        bin = &block;
    }

    /// Takes all parked blocks, as a list by `link`, marked taken. REQUIRES: the stream's lock.
    Block* take_parked() noexcept {
        // Avoids reading each bin in the usual case: other streams mostly have nothing parked.
        if (counters_ == nullptr || counters_->parked_bytes.load(std::memory_order_relaxed) == 0) {
            return nullptr;
        }
        Block* all = nullptr;
        for (Block*& bin : bins_) {
            while (bin != nullptr) {
                Block* const block = bin;
                bin = block->link;
                block->set(BlockState::taken);
                block->link = all;
                all = block;
            }
        }
        detail::add(counters_->parked_bytes,
                    0 - counters_->parked_bytes.load(std::memory_order_relaxed));
        return all;
    }
    /// Takes all parked blocks like `take_parked`, but takes the lock itself.
    Block* take_all() noexcept {
        const std::lock_guard guard(lock_);
        return take_parked();
    }

    StreamHandle stream() const noexcept { return memory.queue.stream; }
    /// The id of the capture, or 0.
    std::uint64_t capture() const noexcept { return capture_; }

    // Under the allocator's lock -----------------------------------------------------------------

    struct Memory {
        FreeSet free[pool_count];
        // For each set: the number of searches. The age of a free block is the number of searches
        // since it was inserted.
        std::uint64_t searches[pool_count] = {};
        SlabList slabs;
        StreamMarks marks;
        GrowthHistory growths;
        StreamQueue queue;              // freed blocks that wait for this stream
        ScalarPage* pages = nullptr;    // open pages with a free position
        bool growing[pool_count] = {};  // a thread is obtaining memory for the pool
        std::uint64_t stream_id = 0;    // StreamCalls::id_of; 0 if unknown
        bool ended = false;
        bool dead = false;  // in the list of dead caches
        StreamCache* next_dead = nullptr;
    };
    Memory memory;

    /// Sets the record in which the stream counts; nullptr: none.
    void set_record(statistics::DeviceStreamRecord* record) noexcept {
        memory.queue.record = record;
        counters_ = record != nullptr ? &record->counters : nullptr;
        if (record != nullptr) record->capture.store(capture_, std::memory_order_relaxed);
    }
    statistics::DeviceStreamRecord* record() const noexcept { return memory.queue.record; }
    void begin_again(StreamHandle stream, std::uint64_t capture) noexcept {
        memory.queue.stream = stream;
        capture_ = capture;
    }

private:
    static constexpr std::size_t bin_count = 256;
    // Limits the search among blocks of other sizes in a bin. Blocks further down are found by set.
    static constexpr unsigned max_looks = 16;

    static std::size_t bin_of(std::size_t rounded) noexcept {
        // Hash by the golden ratio: similar sizes, and powers of two, fall into different bins.
        return static_cast<std::size_t>((rounded / small_grain) * 0x9e3779b97f4a7c15u >> 56);
    }

    [[gnu::always_inline]] void count_hit(Block& block, std::size_t requested) noexcept {
        count_new(block, requested);
        detail::add(counters_->parked_hits, 1);
        detail::add(counters_->parked_bytes, 0 - block.bytes);
    }

    SpinLock lock_;
    std::uint64_t capture_;
    statistics::DeviceStreamCounters* counters_ = nullptr;  // in cache lines of their own
    Block* bins_[bin_count] = {};
};

}  // namespace tensorpool::device
