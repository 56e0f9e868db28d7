#pragma once

/// @file
/// A cache of named tensors: those used most recently are in memory, the others are compressed or
/// in a file. All sizes are bytes.

#include <tensorpool/budget.hpp>
#include <tensorpool/stash.hpp>

namespace tensorpool {

namespace stashing {
class MapState;
struct MapEntry;
}  // namespace stashing

/// The options of a StashedMap.
struct StashedMapOptions {
    /// The name of the map, its pool and its tensors in statistics and messages.
    std::string name = "map";
    /// The budget whose holder the map becomes: when the budget needs memory, the map puts tensors
    /// to rest. nullptr: none. It may end before the map.
    Budget* budget = nullptr;
    /// The pool that compressed bytes and restored tensors are allocated from, which must outlive
    /// the map. nullptr: a pool of the map's own, which charges `budget`. If both are given, the
    /// pool must charge the budget, or one below it.
    MemoryPool* pool = nullptr;
    /// The most bytes of tensors in memory. Pinned tensors may exceed it. 0: no limit of its own.
    std::size_t memory_bytes = 0;
    /// The most bytes of compressed tensors in memory. Requires a folder. 0: a sixteenth of the
    /// budget's hard limit, or else of its soft limit; without either, or a folder, no limit.
    std::size_t compressed_bytes = 0;
    /// The folder for files, on a disk; see StashMethod::spill. "": nothing is spilled.
    std::string folder = {};
    /// The type of the elements of all tensors, which selects how they are compressed. Any type
    /// restores any bytes exactly.
    DataType type = {};
};

/// The state of a StashedMap. Times are those of all threads together.
struct StashedMapStatistics {
    /// The number of tensors.
    std::size_t entries = 0;
    /// The bytes of tensors in memory.
    std::size_t memory_bytes = 0;
    /// The bytes that tensors at rest would have in memory.
    std::size_t stashed_bytes = 0;
    /// The memory that compressed tensors take, including those that are kept beside a tensor in
    /// memory.
    std::size_t compressed_bytes = 0;
    /// The bytes of spilled tensors in files, including those that are kept beside a tensor in
    /// memory.
    std::size_t spilled_bytes = 0;
    /// The calls of `get` and `read` that found the tensor in memory.
    std::size_t hits = 0;
    /// The calls of `get` and `read` that found the tensor at rest, or on its way.
    std::size_t misses = 0;
    /// How often a tensor was put to rest, which only frees its memory if it was kept there.
    std::size_t stashes = 0;
    /// How often a compressed tensor was spilled.
    std::size_t spills = 0;
    /// How often a tensor was restored.
    std::size_t restores = 0;
    /// How often a tensor could not be put to rest or restored. It then stays as it was. Also how
    /// often one that is kept beside a tensor in memory could not be spilled, and was dropped.
    std::size_t failures = 0;
    /// The time of putting tensors to rest, spilling included, in nanoseconds.
    std::uint64_t stash_ns = 0;
    /// The time of restoring tensors in nanoseconds.
    std::uint64_t restore_ns = 0;
};

/// A pinned tensor of a StashedMap: it stays in memory, at the same address, while this object
/// exists. Move-only. Several threads may pin the same tensor at once; those that write it must
/// agree among themselves.
///
/// It may outlive the map, and the tensor's place in it: the tensor is then freed with its last
/// pin.
class TENSORPOOL_API StashedTensor {
public:
    /// Pins nothing.
    StashedTensor() noexcept = default;
    /// Takes the pin of `other`, which then pins nothing.
    StashedTensor(StashedTensor&& other) noexcept = default;
    /// Ends the present pin and takes that of `other`, which then pins nothing.
    StashedTensor& operator=(StashedTensor&& other) noexcept {
        StashedTensor moved(std::move(other));
        map_.swap(moved.map_);
        entry_.swap(moved.entry_);
        return *this;
    }
    /// Ends the pin.
    ~StashedTensor();

    /// Returns whether it pins a tensor.
    explicit operator bool() const noexcept { return entry_ != nullptr; }
    /// Returns the tensor's address; nullptr if it pins nothing, or a tensor of 0 bytes.
    void* get() const noexcept { return bytes().data(); }
    /// Returns the tensor's size; 0 if it pins nothing.
    std::size_t size() const noexcept { return bytes().size(); }
    /// Returns the tensor as `size() / sizeof(T)` elements.
    template <class T>
    std::span<T> as() const noexcept {
        return {static_cast<T*>(get()), size() / sizeof(T)};
    }

private:
    friend class StashedMapBase;
    StashedTensor(std::shared_ptr<stashing::MapState> map,
                  std::shared_ptr<stashing::MapEntry> entry) noexcept
        : map_(std::move(map)), entry_(std::move(entry)) {}
    std::span<std::byte> bytes() const noexcept;

    std::shared_ptr<stashing::MapState> map_;  // ends after the entry, whose memory is its pool's
    std::shared_ptr<stashing::MapEntry> entry_;
};

/// A StashedTensor for reading only. Other threads may pin the same tensor for reading or writing;
/// those that write it must agree with those that read it.
class StashedTensorView {
public:
    /// Pins nothing.
    StashedTensorView() noexcept = default;

    /// Returns whether it pins a tensor.
    explicit operator bool() const noexcept { return static_cast<bool>(pin_); }
    /// Returns the tensor's address; nullptr if it pins nothing, or a tensor of 0 bytes.
    const void* get() const noexcept { return pin_.get(); }
    /// Returns the tensor's size; 0 if it pins nothing.
    std::size_t size() const noexcept { return pin_.size(); }
    /// Returns the tensor as `size() / sizeof(T)` elements.
    template <class T>
    std::span<const T> as() const noexcept {
        return pin_.template as<const T>();
    }

private:
    friend class StashedMapBase;
    explicit StashedTensorView(StashedTensor&& pin) noexcept : pin_(std::move(pin)) {}

    StashedTensor pin_;
};

/// A StashedMap for keys of any type.
class TENSORPOOL_API StashedMapBase {
public:
    StashedMapBase(const StashedMapBase&) = delete;
    StashedMapBase& operator=(const StashedMapBase&) = delete;

    /// Returns the number of tensors.
    std::size_t size() const noexcept { return statistics().entries; }
    /// Returns the pool that restored tensors are allocated from. If new tensors come from it too,
    /// they are charged to the map's budget from the start. A pool of the map's own exists until
    /// the map and all pins have ended.
    MemoryPool& pool() const noexcept;
    /// Returns the map's state.
    StashedMapStatistics statistics() const noexcept;
    /// Returns the message of the latest failure that no call of the map threw, such as a full disk
    /// while a budget needed memory; "" if there was none.
    std::string last_failure() const;

protected:
    /// Compares two keys.
    using KeyEqual = bool (*)(const void*, const void*);
    /// Owns a key.
    using KeyPointer = std::shared_ptr<const void>;

    /// Makes an empty map; see StashedMap.
    StashedMapBase(StashedMapOptions&& options, KeyEqual equal);
    ~StashedMapBase();
    /// See StashedMap::put.
    void put(std::size_t hash, KeyPointer key, PooledAllocation&& tensor);
    /// See StashedMap::get.
    StashedTensor get(std::size_t hash, const void* key);
    /// See StashedMap::read.
    StashedTensorView read(std::size_t hash, const void* key);
    /// See StashedMap::erase.
    bool erase(std::size_t hash, const void* key) noexcept;
    /// See StashedMap::contains.
    bool contains(std::size_t hash, const void* key) const noexcept;
    /// See StashedMap::prefetch.
    void prefetch(std::size_t hash, const void* key) noexcept;

private:
    std::shared_ptr<stashing::MapState> state_;
};

/// Keeps tensors by key: those used most recently in memory, the others compressed or in a file.
/// What comes back has the same bytes. Thread-safe; neither copied nor moved.
///
/// When its budget or its own limit needs memory, it puts the least recently used tensors to rest
/// that are not pinned: with a folder, those that do not shrink to three quarters go to a file, and
/// the others follow when memory is needed still. Without a folder, tensors that do not shrink by a
/// sixteenth stay in memory, and so do those of 64 bytes or less in any case; that counts as a
/// failure. If a tensor cannot be put to rest or restored, it stays as it was.
///
/// What `read` restored is also kept at rest, so that it can go to rest again at once. When memory
/// is needed, kept compressed bytes go to a file, or are dropped if there is no folder, before any
/// tensor is compressed.
///
/// Compressing needs memory for what it writes. So a map with a budget and no folder keeps a block
/// free, as large as its largest tensor so far. If other threads take the memory of that block, the
/// compressed bytes go to the process's pool "stash", and are not charged until they are restored.
/// While a thread compresses or restores, it also uses up to 2 MiB of that pool.
///
/// After a fork the child has all tensors. Those that other threads had pinned stay in memory
/// there. A holder of a budget must not use the map while it gives. `Hash` and `Equal` are
/// default-constructed; they must neither throw, allocate memory, nor use the map.
template <class Key, class Hash = std::hash<Key>, class Equal = std::equal_to<Key>>
class StashedMap : public StashedMapBase {
public:
    /// Makes an empty map. Throws std::invalid_argument for a limit above 2^60, which a negative
    /// number becomes, for `compressed_bytes` without a folder, and for a pool that does not charge
    /// the budget; AllocationError or std::bad_alloc if there is no memory.
    explicit StashedMap(StashedMapOptions options = {})
        : StashedMapBase(std::move(options), &are_equal) {}
    /// Drops all tensors. Those that are pinned exist until their last pin ends.
    ~StashedMap() = default;

    /// Takes a block of any pool as the tensor of `key`; it may own nothing. Replaces the tensor
    /// that the key has, and puts others to rest if the limit requires it.
    ///
    /// If this fails, the handle still owns its block. Throws std::invalid_argument for a block of
    /// another source than a pool, and std::bad_alloc.
    void put(Key key, PooledAllocation&& tensor) {
        const std::size_t hash = Hash()(key);
        StashedMapBase::put(hash, std::make_shared<const Key>(std::move(key)), std::move(tensor));
    }
    /// Pins the tensor of `key` for reading and writing, and restores it if it is at rest. Returns
    /// a pin of nothing if there is none.
    ///
    /// If this fails, the tensor stays at rest. Throws AllocationError if there is no memory
    /// although all other tensors were put to rest; StashError for damage and for errors of the
    /// file.
    [[nodiscard]] StashedTensor get(const Key& key) {
        return StashedMapBase::get(Hash()(key), &key);
    }
    /// Pins the tensor of `key` for reading only, and restores it if it is at rest. Returns a pin
    /// of nothing if there is none.
    ///
    /// A tensor that is only read need not be compressed or written again when it goes to rest: it
    /// is kept there as well until the next `get`. Bytes that are changed nevertheless may be lost.
    /// Throws what `get` does.
    [[nodiscard]] StashedTensorView read(const Key& key) {
        return StashedMapBase::read(Hash()(key), &key);
    }
    /// Drops the tensor of `key`. Returns whether there was one.
    bool erase(const Key& key) noexcept { return StashedMapBase::erase(Hash()(key), &key); }
    /// Returns whether there is a tensor for `key`.
    bool contains(const Key& key) const noexcept {
        return StashedMapBase::contains(Hash()(key), &key);
    }
    /// Requests that the system reads the tensor of `key` into its page cache if it is spilled, so
    /// that a `get` soon after need not wait for the disk. Returns at once and starts no thread.
    void prefetch(const Key& key) noexcept { StashedMapBase::prefetch(Hash()(key), &key); }

private:
    static bool are_equal(const void* a, const void* b) {
        return Equal()(*static_cast<const Key*>(a), *static_cast<const Key*>(b));
    }
};

}  // namespace tensorpool
