#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <tensorpool/pooled_allocation.hpp>

#include "stash/stash_state.hpp"

namespace tensorpool::stashing {

class EntryList;

/// What an entry adds to the sums of its map.
struct EntrySizes {
    std::size_t in_memory = 0;   // bytes of the tensor
    std::size_t compressed = 0;  // memory that its encoding takes
    std::size_t spilled = 0;     // bytes of files
    std::size_t at_rest = 0;     // bytes that the tensor would have in memory
};

/// A tensor of a map. It is in memory if `rest` is nullptr, otherwise at rest.
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

    PooledAllocation tensor;
    std::unique_ptr<StashState> rest;
    std::size_t pins = 0;
    bool is_busy = false;
    bool is_attached = false;      // to the table: not erased, nor replaced
    bool does_not_shrink = false;  // as found since it was last pinned
    EntrySizes counted;            // in the sums of the map

    std::shared_ptr<MapEntry> next_in_bucket;
    EntryList* list = nullptr;  // that it is in
    MapEntry* next = nullptr;
    MapEntry* previous = nullptr;
};

/// Entries from the least to the most recently used.
class EntryList {
public:
    EntryList() noexcept = default;
    EntryList(const EntryList&) = delete;
    EntryList& operator=(const EntryList&) = delete;

    MapEntry* first() const noexcept { return first_; }
    void push_back(MapEntry& entry) noexcept {
        entry.list = this;
        entry.next = nullptr;
        entry.previous = last_;
        (last_ == nullptr ? first_ : last_->next) = &entry;
        last_ = &entry;
    }
    /// Takes an entry out of the list that it is in, if any.
    static void remove(MapEntry& entry) noexcept {
        if (EntryList* const list = std::exchange(entry.list, nullptr)) list->unlink(entry);
    }

private:
    void unlink(MapEntry& entry) noexcept {
        (entry.previous == nullptr ? first_ : entry.previous->next) = entry.next;
        (entry.next == nullptr ? last_ : entry.next->previous) = entry.previous;
    }

    MapEntry* first_ = nullptr;
    MapEntry* last_ = nullptr;
};

}  // namespace tensorpool::stashing
