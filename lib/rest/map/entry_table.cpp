#include "rest/map/entry_table.hpp"

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

void ListedEntries::attach(MapEntry& entry) noexcept {
    entry.is_attached = true;
    ++totals_.tensors;
    count(entry, {.in_memory = entry.bytes});
    list(entry);
}

void ListedEntries::detach(MapEntry& entry) noexcept {
    entry.leave_lists();
    count(entry, {});
    --totals_.tensors;
    entry.is_attached = false;
}

void ListedEntries::list(MapEntry& entry) noexcept {
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

TakenTensor ListedEntries::take_oldest_in_memory() noexcept {
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

std::unique_ptr<StashState> ListedEntries::take_kept(MapEntry& entry) noexcept {
    std::unique_ptr<StashState> kept = std::move(entry.rest);
    entry.as_kept.unlink();
    if (kept != nullptr) count(entry, {.in_memory = entry.bytes});
    return kept;
}

void ListedEntries::finish(MapEntry& entry, const EntrySizes& sizes) noexcept {
    entry.is_busy = false;
    count(entry, sizes);
    list(entry);
    moves_.fetch_add(1, std::memory_order_relaxed);
    moves_.notify_all();
}

void ListedEntries::wait_until_idle(const MapEntry& entry,
                                    std::unique_lock<std::mutex>& lock) const noexcept {
    while (entry.is_busy) {
        const unsigned seen = moves_.load(std::memory_order_relaxed);  // changes under the lock
        lock.unlock();
        moves_.wait(seen, std::memory_order_relaxed);
        lock.lock();
    }
}

void ListedEntries::count(MapEntry& entry, const EntrySizes& sizes) noexcept {
    if (!entry.is_attached) return;
    const auto change = [](detail::Counter& total, std::size_t& before, std::size_t now) {
        total += now - before;  // of unsigned numbers: a difference below 0 wraps, and back
        before = now;
    };
    const auto kept = [](const EntrySizes& of) { return of.in_memory == 0 ? 0 : of.compressed; };
    kept_bytes_ = kept_bytes_ - kept(entry.counted) + kept(sizes);
    change(totals_.memory_bytes, entry.counted.in_memory, sizes.in_memory);
    change(totals_.compressed_bytes, entry.counted.compressed, sizes.compressed);
    change(totals_.spilled_bytes, entry.counted.spilled, sizes.spilled);
    change(totals_.stashed_bytes, entry.counted.at_rest, sizes.at_rest);
}

}  // namespace tensorpool::stashing
