#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

class StreamCache;

/// Maps a stream's handle to its cache. Lookups take no lock; changes are made under the
/// allocator's lock. Entries are never removed. Outgrown tables are kept, because a thread may be
/// reading them.
class StreamTable {
public:
    /// Throws std::bad_alloc.
    StreamTable();
    StreamTable(const StreamTable&) = delete;
    StreamTable& operator=(const StreamTable&) = delete;

    StreamCache* find(StreamHandle stream) const noexcept {
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
    void add(StreamHandle stream, StreamCache& cache);
    /// Sets another cache for a stream. REQUIRES: the stream is in the table.
    void replace(StreamHandle stream, StreamCache& cache) noexcept;

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
    static void put(Table& table, std::uintptr_t key, StreamCache* cache) noexcept;

    std::atomic<const Table*> table_;
    std::vector<std::unique_ptr<Table>> tables_;  // the last one is current
    std::size_t count_ = 0;
};

}  // namespace tensorpool::device
