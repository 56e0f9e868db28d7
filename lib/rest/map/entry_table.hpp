#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "rest/map/map_entry.hpp"

namespace tensorpool::stashing {

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
    void exchange(Buckets& buckets) noexcept;

    /// Returns nullptr if there is none.
    std::shared_ptr<MapEntry> find(std::size_t hash, const void* key) const noexcept;
    /// REQUIRES: there is none with this key.
    void insert(std::shared_ptr<MapEntry> entry) noexcept;
    /// Takes an entry out. Returns nullptr if there is none.
    std::shared_ptr<MapEntry> remove(std::size_t hash, const void* key) noexcept;

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
    static std::size_t bucket_of(const Buckets& buckets, std::size_t hash) noexcept;
    /// Returns the link to the entry, or the empty link at the end of its bucket.
    const std::shared_ptr<MapEntry>& link_of(std::size_t hash, const void* key) const noexcept;

    Equal equal_;
    Buckets buckets_;
    std::size_t size_ = 0;
};

}  // namespace tensorpool::stashing
