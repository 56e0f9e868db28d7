#pragma once

#include <boost/intrusive/list.hpp>

#include "base/lockable.hpp"
#include "rest/stash_state.hpp"

namespace tensorpool::stashing {

/// What an entry adds to the sums of its map.
struct EntrySizes {
    std::size_t in_memory = 0;   // bytes of the tensor
    std::size_t compressed = 0;  // memory that its encoding takes
    std::size_t spilled = 0;     // bytes of files
    std::size_t at_rest = 0;     // bytes that the tensor would have in memory
};

/// The position of an entry in a list, which it leaves by `unlink`.
using EntryHook =
    boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>>;

/// A tensor of a map. It is in memory, or `rest` has its encoding, or both: the encoding of a
/// tensor that was restored for reading only is kept until a thread pins it for writing.
///
/// The lock of the map guards all members that are not const. A thread that makes the entry busy
/// moves its content without the lock, while `tensor` and `rest` stay as they are: it builds the
/// other form, and exchanges both under the lock. So the content is whole at every fork. Threads
/// that pinned the entry use the tensor's bytes without the lock.
struct MapEntry : std::enable_shared_from_this<MapEntry> {
    MapEntry(std::size_t its_hash, std::shared_ptr<const void> its_key, PooledAllocation&& its)
        : hash(its_hash),
          key(std::move(its_key)),
          bytes(its.size()),
          alignment(its ? its.held().owner.alignment() : 64),
          tensor(std::move(its)) {}

    const std::size_t hash;
    const std::shared_ptr<const void> key;
    const std::size_t bytes;
    const std::size_t alignment;

    bool is_in_memory() const noexcept { return rest == nullptr || tensor; }
    void leave_lists() noexcept {
        by_use.unlink();
        as_kept.unlink();
    }

    PooledAllocation tensor;
    std::unique_ptr<StashState> rest;
    std::size_t pins = 0;
    bool is_busy = false;
    bool is_attached = false;      // to the table: not erased, nor replaced
    bool does_not_shrink = false;  // as found since it was last pinned
    EntrySizes counted;            // in the sums of the map

    std::shared_ptr<MapEntry> next_in_bucket;
    EntryHook by_use;   // in the list of those in memory, or of the compressed ones
    EntryHook as_kept;  // in the list of those whose encoding is kept
};

/// Entries from the least to the most recently used.
template <EntryHook MapEntry::*hook>
using EntryList =
    boost::intrusive::list<MapEntry, boost::intrusive::member_hook<MapEntry, EntryHook, hook>,
                           boost::intrusive::constant_time_size<false>>;

/// The entries of a map by key: a hash table of lists. It allocates nothing by itself, since it is
/// used under a lock: the caller makes the buckets.
class EntryTable {
public:
    using Equal = bool (*)(const void*, const void*);
    using Buckets = std::vector<std::shared_ptr<MapEntry>>;

    /// REQUIRES: the number of buckets is a power of two.
    EntryTable(Equal equal, Buckets buckets) noexcept
        : equal_(equal), buckets_(std::move(buckets)) {}

    std::size_t size() const noexcept { return size_; }
    /// Returns how many buckets it should have for one more entry; 0 if it has enough.
    std::size_t wanted_buckets() const noexcept {
        return size_ < buckets_.size() ? 0 : buckets_.size() * 2;
    }
    /// Takes all entries out. The table cannot be used afterwards, except for `for_each`.
    Buckets take_all() noexcept {
        size_ = 0;
        return std::exchange(buckets_, {});
    }
    /// Moves all entries to `buckets`, which then has the present ones.
    void exchange(Buckets& buckets) noexcept {
        for (std::shared_ptr<MapEntry>& first : buckets_) {
            while (first != nullptr) {
                std::shared_ptr<MapEntry> entry = std::move(first);
                first = std::move(entry->next_in_bucket);
                std::shared_ptr<MapEntry>& to = buckets[bucket_of(buckets, entry->hash)];
                entry->next_in_bucket = std::move(to);
                to = std::move(entry);
            }
        }
        buckets_.swap(buckets);
    }

    /// Returns nullptr if there is none.
    std::shared_ptr<MapEntry> find(std::size_t hash, const void* key) const noexcept {
        return link_of(hash, key);
    }
    /// REQUIRES: there is none with this key.
    void insert(std::shared_ptr<MapEntry> entry) noexcept {
        std::shared_ptr<MapEntry>& first = buckets_[bucket_of(buckets_, entry->hash)];
        entry->next_in_bucket = std::move(first);
        first = std::move(entry);
        ++size_;
    }
    /// Takes an entry out. Returns nullptr if there is none.
    std::shared_ptr<MapEntry> remove(std::size_t hash, const void* key) noexcept {
        auto& link = const_cast<std::shared_ptr<MapEntry>&>(link_of(hash, key));
        std::shared_ptr<MapEntry> entry = std::move(link);
        if (entry == nullptr) return entry;
        link = std::move(entry->next_in_bucket);
        --size_;
        return entry;
    }

    /// Calls `function(MapEntry&)` for each entry.
    template <class Function>
    void for_each(Function function) const {
        for (const std::shared_ptr<MapEntry>& first : buckets_) {
            for (MapEntry* entry = first.get(); entry != nullptr;
                 entry = entry->next_in_bucket.get()) {
                function(*entry);
            }
        }
    }

private:
    // Hashes of integers are often the integers: Fibonacci hashing (Knuth, TAOCP 3, 6.4) spreads
    // them.
    static std::size_t bucket_of(const Buckets& buckets, std::size_t hash) noexcept {
        const std::uint64_t mixed = std::uint64_t{hash} * 0x9E37'79B9'7F4A'7C15U;
        return static_cast<std::size_t>(mixed >> 32) & (buckets.size() - 1);
    }
    /// Returns the link to the entry, or the empty link at the end of its bucket.
    const std::shared_ptr<MapEntry>& link_of(std::size_t hash, const void* key) const noexcept {
        const std::shared_ptr<MapEntry>* link = &buckets_[bucket_of(buckets_, hash)];
        while (*link != nullptr && ((*link)->hash != hash || !equal_((*link)->key.get(), key)))
            link = &(*link)->next_in_bucket;
        return *link;
    }

    Equal equal_;
    Buckets buckets_;
    std::size_t size_ = 0;
};

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

    void attach(MapEntry& entry) noexcept {
        entry.is_attached = true;
        ++totals_.tensors;
        count(entry, {.in_memory = entry.bytes});
        list(entry);
    }
    void detach(MapEntry& entry) noexcept {
        entry.leave_lists();
        count(entry, {});
        --totals_.tensors;
        entry.is_attached = false;
    }
    /// Puts an entry at the end of the list where it belongs now, if any.
    void list(MapEntry& entry) noexcept {
        entry.leave_lists();
        if (!entry.is_attached || entry.is_busy) return;
        const bool is_compressed = entry.rest != nullptr && entry.counted.spilled == 0;
        if (is_compressed && entry.tensor) kept_.push_back(entry);
        if (entry.pins != 0) return;
        if (!entry.is_in_memory()) {
            if (is_compressed) compressed_.push_back(entry);
        } else if (entry.bytes != 0 && !entry.does_not_shrink) {
            in_memory_.push_back(entry);
        }
    }

    // Each makes the oldest entry of a list busy and returns it, or nullptr if there is none.
    std::shared_ptr<MapEntry> take_oldest_compressed() noexcept { return take_oldest(compressed_); }
    std::shared_ptr<MapEntry> take_oldest_kept() noexcept { return take_oldest(kept_); }
    /// Takes the oldest tensor in memory. Takes nothing if there is none.
    TakenTensor take_oldest_in_memory() noexcept {
        if (in_memory_.empty() || in_memory_.front().rest == nullptr)
            return {take_oldest(in_memory_), {}};
        MapEntry& entry = in_memory_.front();
        TakenTensor taken{nullptr, std::move(entry.tensor)};
        ++totals_.stashes;
        count(entry, {.compressed = entry.counted.compressed,
                      .spilled = entry.counted.spilled,
                      .at_rest = entry.bytes});
        list(entry);
        return taken;
    }
    /// Takes the encoding, if any, of an entry in memory that is not busy.
    std::unique_ptr<StashState> take_kept(MapEntry& entry) noexcept {
        std::unique_ptr<StashState> kept = std::move(entry.rest);
        entry.as_kept.unlink();
        if (kept != nullptr) count(entry, {.in_memory = entry.bytes});
        return kept;
    }
    /// Ends the move of an entry, and counts it as it is now.
    void finish(MapEntry& entry, const EntrySizes& sizes) noexcept {
        entry.is_busy = false;
        count(entry, sizes);
        list(entry);
        moves_.fetch_add(1, std::memory_order_relaxed);
        moves_.notify_all();
    }
    void wait_until_idle(const MapEntry& entry, std::unique_lock<std::mutex>& lock) const noexcept {
        while (entry.is_busy) {
            const unsigned seen = moves_.load(std::memory_order_relaxed);  // changes under the lock
            lock.unlock();
            moves_.wait(seen, std::memory_order_relaxed);
            lock.lock();
        }
    }

    /// Returns the compressed bytes of tensors that are also in memory.
    std::size_t kept_bytes() const noexcept { return kept_bytes_; }

private:
    static std::shared_ptr<MapEntry> take_oldest(auto& list) noexcept {
        if (list.empty()) return nullptr;
        MapEntry& entry = list.front();
        entry.leave_lists();
        entry.is_busy = true;
        return entry.shared_from_this();
    }
    void count(MapEntry& entry, const EntrySizes& sizes) noexcept {
        if (!entry.is_attached) return;
        const auto change = [](detail::Counter& total, std::size_t& before, std::size_t now) {
            total += now - before;  // of unsigned numbers: a difference below 0 wraps, and back
            before = now;
        };
        const auto kept = [](const EntrySizes& of) {
            return of.in_memory == 0 ? 0 : of.compressed;
        };
        kept_bytes_ = kept_bytes_ - kept(entry.counted) + kept(sizes);
        change(totals_.memory_bytes, entry.counted.in_memory, sizes.in_memory);
        change(totals_.compressed_bytes, entry.counted.compressed, sizes.compressed);
        change(totals_.spilled_bytes, entry.counted.spilled, sizes.spilled);
        change(totals_.stashed_bytes, entry.counted.at_rest, sizes.at_rest);
    }

    statistics::StashTotals& totals_;
    EntryList<&MapEntry::by_use> in_memory_;
    EntryList<&MapEntry::by_use> compressed_;
    EntryList<&MapEntry::as_kept> kept_;
    std::size_t kept_bytes_ = 0;
    // Counts ended moves; threads that wait for one wait for its change.
    std::atomic<unsigned> moves_ = 0;
};

/// While it exists, the thread requests memory of a pool for a map that uses it. What the map then
/// gives need not leave the pool.
class OwnRequest {
public:
    explicit OwnRequest(const MemoryPool& pool) noexcept : outer_(std::exchange(current_, &pool)) {}
    ~OwnRequest() { current_ = outer_; }
    OwnRequest(const OwnRequest&) = delete;
    OwnRequest& operator=(const OwnRequest&) = delete;

    static bool is_for(const MemoryPool& pool) noexcept { return current_ == &pool; }

private:
    static constinit inline thread_local const MemoryPool* current_ TENSORPOOL_INITIAL_EXEC =
        nullptr;
    const MemoryPool* outer_;
};

inline bool is_of(const PooledAllocation& block, const MemoryPool& pool) noexcept {
    return block && block.held().owner.pool() == &pool;
}

/// A block that a map keeps, so that it can compress a tensor while its budget has no room.
/// Thread-safe. It allocates and frees outside its lock, which is a leaf.
class MapReserve : public base::Lockable {
public:
    /// Sets the size to `bytes` if that is more than before.
    void grow_to(std::size_t bytes) noexcept {
        const std::lock_guard guard(mutex_);
        wanted_ = std::max(wanted_, bytes);
    }
    /// Frees the block. Returns the memory that it took.
    std::size_t free() noexcept {
        PooledAllocation freed;
        const std::lock_guard guard(mutex_);
        freed = std::move(block_);
        return freed.size();
    }
    /// Makes a block of `pool` the reserve if there is none of the wanted size: `block`, which may
    /// be none, or another one. Otherwise frees it. Returns the memory that was added to the
    /// reserve. Does nothing if there is no memory.
    std::size_t refill(MemoryPool& pool, PooledAllocation block) noexcept {
        std::unique_lock lock(mutex_);
        const std::size_t wanted = wanted_;
        const std::size_t present = block_.size();
        lock.unlock();
        if (present >= wanted) return 0;
        // A block of up to twice the size is kept: freeing it would only move its pages.
        if (!is_of(block, pool) || block.size() < wanted || block.size() / 2 > wanted) {
            block.reset();
            try {
                const OwnRequest own(pool);
                block = PooledAllocation(pool, wanted);
            } catch (const AllocationError&) {
                return 0;
            }
        }
        lock.lock();
        if (block_.size() < block.size()) block_.swap(block);
        const std::size_t added = block_.size() - std::min(block_.size(), block.size());
        lock.unlock();
        return added;
    }

private:
    std::size_t wanted_ = 0;
    PooledAllocation block_;
};

inline EntrySizes sizes_of(const StashState& rest) noexcept {
    return {.compressed = rest.encoded().bytes_in_memory(),
            .spilled = rest.encoded().bytes_in_file(),
            .at_rest = rest.size()};
}

/// Returns whether an entry takes less of its pool's memory at rest, by what is worth a move.
inline bool saves_memory(const StashState& rest, const MapEntry& entry) noexcept {
    const EncodedBytes& encoded = rest.encoded();
    if (encoded.store() != nullptr) return true;
    const std::size_t usable = usable_bytes(entry.tensor);
    return std::max(encoded.size(), encoded.bytes_in_memory()) <= usable - usable / 16;
}

/// Returns whether the encoding of an entry may go to a file in `folder`, "" for none. The records
/// of a stash take more than one of the smallest blocks, so such tensors stay in memory.
inline bool may_spill(const MapEntry& entry, const std::string& folder) noexcept {
    return !folder.empty() && usable_bytes(entry.tensor) > detail::smallest_block_bytes;
}

}  // namespace tensorpool::stashing
