#pragma once

#include <exception>

#include <tensorpool/stashed_map.hpp>

#include "limits/budget_node.hpp"
#include "rest/map/entry_table.hpp"
#include "rest/map/map_reserve.hpp"

namespace tensorpool::stashing {

/// What a pin is for.
enum class Access : bool { read, write };

/// The implementation of a StashedMap: the entries by key and by age, and the moves between memory
/// and rest.
///
/// One lock guards the entries. It is never held while memory is allocated or freed, content is
/// encoded or decoded, or a file is used: a thread marks the entry as busy instead, and threads
/// that want the same entry wait. So the map can give memory to a request of its own.
class MapState final : public MemoryHolder {
public:
    /// Throws what the constructor of StashedMap does.
    MapState(StashedMapOptions&& options, EntryTable::Equal equal);
    ~MapState() override;
    /// Ends the registration and drops all entries that are not pinned.
    void close() noexcept;

    /// Makes room in the table for one more entry. Throws std::bad_alloc.
    void make_bucket();
    void put(std::shared_ptr<MapEntry> entry) noexcept;
    /// Returns a pinned entry, or nullptr if there is none. Throws what StashedMap::get does.
    std::shared_ptr<MapEntry> get(std::size_t hash, const void* key, Access access);
    void unpin(MapEntry& entry) noexcept;
    bool erase(std::size_t hash, const void* key) noexcept;
    bool contains(std::size_t hash, const void* key) const noexcept;
    void prefetch(std::size_t hash, const void* key) noexcept;

    std::size_t available() const noexcept override;
    std::size_t give(std::size_t bytes) noexcept override;

    MemoryPool& pool() const noexcept { return pool_; }
    const std::string& name() const noexcept { return options_.name; }
    StashedMapStatistics statistics() const noexcept;
    std::string last_failure() const;

    // Around forks.
    void lock() noexcept;
    void unlock() noexcept;
    /// Called in the child, with the lock held: the threads that moved content are gone.
    void forget_movers() noexcept;
    MapState* next_map = nullptr;

private:
    /// Takes the lock, which other threads hold only for some instructions. Returns no lock if they
    /// keep it, which includes this thread.
    std::unique_lock<std::mutex> try_to_lock() noexcept;
    /// Puts a tensor to rest. Returns the memory that this gained; nothing if there is no tensor or
    /// it failed.
    std::optional<std::size_t> put_to_rest(TakenTensor taken) noexcept;
    std::unique_ptr<StashState> encode(const MapEntry& entry) const;
    /// Moves the encoding of a busy entry from memory to a file. Drops it instead if it is kept
    /// beside the tensor and cannot be spilled. Returns what `put_to_rest` does.
    std::optional<std::size_t> spill(MapEntry& entry) noexcept;
    // These give memory and return what `put_to_rest` does.
    std::optional<std::size_t> give_oldest_in_memory() noexcept;
    std::optional<std::size_t> give_oldest_compressed() noexcept;
    /// Counts a failure and keeps its message. REQUIRES: the lock is held.
    void note(const std::exception& error) noexcept;
    /// Ends a move that changed nothing.
    std::nullopt_t fail(MapEntry& entry, const std::exception& error) noexcept;
    /// Keeps the encoding if `access` is to read.
    void restore(MapEntry& entry, Access access);
    PooledAllocation allocate(const MapEntry& entry);
    /// Puts entries to rest and spills others until the limits of the options are met.
    void make_room() noexcept;
    /// Returns the most bytes of compressed tensors; 0 is no limit. Takes the lock of the budgets.
    std::size_t compressed_limit() const noexcept;
    std::size_t give_entries(std::size_t bytes) noexcept;

    const StashedMapOptions options_;
    const std::unique_ptr<MemoryPool> own_pool_;
    MemoryPool& pool_;
    MemoryPool& work_pool_;
    const limits::HeldBudget budget_;
    MapReserve reserve_;

    mutable std::mutex mutex_;
    EntryTable table_;
    StashWords words_;
    statistics::StashTotals& totals_;  // those of words_
    ListedEntries entries_;
    std::size_t incoming_bytes_ = 0;  // being restored
    char last_failure_[256] = {};

    HolderRegistration registration_;
};

}  // namespace tensorpool::stashing
