#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include <tensorpool/pooled_allocation.hpp>

#include "rest/stash_state.hpp"

namespace tensorpool::stashing {

class EntryList;
struct MapEntry;

/// What an entry adds to the sums of its map.
struct EntrySizes {
    std::size_t in_memory = 0;   // bytes of the tensor
    std::size_t compressed = 0;  // memory that its encoding takes
    std::size_t spilled = 0;     // bytes of files
    std::size_t at_rest = 0;     // bytes that the tensor would have in memory
};

/// The neighbors of an entry in a list.
struct EntryLinks {
    EntryList* list = nullptr;
    MapEntry* next = nullptr;
    MapEntry* previous = nullptr;
};

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

    PooledAllocation tensor;
    std::unique_ptr<StashState> rest;
    std::size_t pins = 0;
    bool is_busy = false;
    bool is_attached = false;      // to the table: not erased, nor replaced
    bool does_not_shrink = false;  // as found since it was last pinned
    EntrySizes counted;            // in the sums of the map

    std::shared_ptr<MapEntry> next_in_bucket;
    EntryLinks by_use;   // in the list of those in memory, or of the compressed ones
    EntryLinks as_kept;  // in the list of those whose encoding is kept
};

/// Entries from the least to the most recently used. An entry is in one list for each of its links.
class EntryList {
public:
    explicit EntryList(EntryLinks MapEntry::*links) noexcept : links_(links) {}
    EntryList(const EntryList&) = delete;
    EntryList& operator=(const EntryList&) = delete;

    MapEntry* first() const noexcept { return first_; }
    /// Puts an entry at the end, and takes it out of the list that it was in by these links, if
    /// any.
    void push_back(MapEntry& entry) noexcept {
        remove(entry.*links_);
        entry.*links_ = {.list = this, .next = nullptr, .previous = last_};
        (last_ == nullptr ? first_ : (last_->*links_).next) = &entry;
        last_ = &entry;
    }
    /// Takes an entry out of the list that it is in by these links, if any.
    static void remove(EntryLinks& links) noexcept {
        if (EntryList* const list = std::exchange(links.list, nullptr)) list->unlink(links);
    }
    /// Takes an entry out of all lists.
    static void remove(MapEntry& entry) noexcept {
        remove(entry.by_use);
        remove(entry.as_kept);
    }

private:
    void unlink(const EntryLinks& links) noexcept {
        (links.previous == nullptr ? first_ : (links.previous->*links_).next) = links.next;
        (links.next == nullptr ? last_ : (links.next->*links_).previous) = links.previous;
    }

    EntryLinks MapEntry::*const links_;
    MapEntry* first_ = nullptr;
    MapEntry* last_ = nullptr;
};

}  // namespace tensorpool::stashing
