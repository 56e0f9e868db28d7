#include "rest/map/entry_table.hpp"

#include <cstdint>
#include <utility>

namespace tensorpool::stashing {

// Hashes of integers are often the integers: Fibonacci hashing (Knuth, TAOCP 3, 6.4) spreads them.
std::size_t EntryTable::bucket_of(const Buckets& buckets, std::size_t hash) noexcept {
    const std::uint64_t mixed = std::uint64_t{hash} * 0x9E37'79B9'7F4A'7C15U;
    return static_cast<std::size_t>(mixed >> 32) & (buckets.size() - 1);
}

void EntryTable::exchange(Buckets& buckets) noexcept {
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

const std::shared_ptr<MapEntry>& EntryTable::link_of(std::size_t hash,
                                                     const void* key) const noexcept {
    const std::shared_ptr<MapEntry>* link = &buckets_[bucket_of(buckets_, hash)];
    while (*link != nullptr && ((*link)->hash != hash || !equal_((*link)->key.get(), key)))
        link = &(*link)->next_in_bucket;
    return *link;
}

std::shared_ptr<MapEntry> EntryTable::find(std::size_t hash, const void* key) const noexcept {
    return link_of(hash, key);
}

void EntryTable::insert(std::shared_ptr<MapEntry> entry) noexcept {
    std::shared_ptr<MapEntry>& first = buckets_[bucket_of(buckets_, entry->hash)];
    entry->next_in_bucket = std::move(first);
    first = std::move(entry);
    ++size_;
}

std::shared_ptr<MapEntry> EntryTable::remove(std::size_t hash, const void* key) noexcept {
    auto& link = const_cast<std::shared_ptr<MapEntry>&>(link_of(hash, key));
    std::shared_ptr<MapEntry> entry = std::move(link);
    if (entry == nullptr) return entry;
    link = std::move(entry->next_in_bucket);
    --size_;
    return entry;
}

}  // namespace tensorpool::stashing
