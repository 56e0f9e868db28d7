#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "device/caching/blocks/block.hpp"

namespace tensorpool::device {

/// Maps an address to its block's record: a tree of two levels over units of 2 MiB, and for each
/// unit in which a block was handed out a table with an entry for each grain where one may begin.
/// Lookups take no lock; changes are made under the allocator's lock. Addresses beyond 48 bits are
/// in a hash table with a lock.
///
/// The entry of a block in use does not change. It was stored before the block's address was
/// returned to the caller, so a caller that passes its block finds it, in whichever table it reads.
class BlockMap {
public:
    BlockMap() = default;
    BlockMap(const BlockMap&) = delete;
    BlockMap& operator=(const BlockMap&) = delete;
    ~BlockMap();

    /// Returns the block whose grain contains the address, or nullptr. The block begins at the
    /// address or before it.
    Block* find(const void* address) const noexcept {
        const auto bits = reinterpret_cast<std::uintptr_t>(address);
        if (bits >> address_bits != 0) [[unlikely]]
            return find_beyond(bits);
        const Leaf* const leaf = root_[bits >> leaf_shift].load(std::memory_order_acquire);
        if (leaf == nullptr) [[unlikely]]
            return nullptr;
        const std::uintptr_t table =
            leaf->units[bits >> unit_shift & (leaf_units - 1)].load(std::memory_order_acquire);
        if (table == 0) [[unlikely]]
            return nullptr;
        return entries(table)[index(bits, table)].load(std::memory_order_acquire);
    }

    /// Makes the table needed for a block of this pool that begins at the address. Throws
    /// std::bad_alloc.
    void cover(const void* address, Pool pool);
    /// Adds or removes a block's entry. REQUIRES, to add one: `cover` was called for its address.
    void set(Block& block) noexcept { put(block.address, &block); }
    void clear(const Block& block) noexcept { put(block.address, nullptr); }

private:
    // 2^13 leaves of 2^14 units of 2 MiB.
    static constexpr unsigned address_bits = 48;
    static constexpr unsigned unit_shift = 21;
    static constexpr unsigned leaf_shift = 35;
    static constexpr std::size_t leaf_units = std::size_t{1} << (leaf_shift - unit_shift);
    static constexpr unsigned fine_shift = 9;     // small_grain
    static constexpr unsigned coarse_shift = 14;  // large_grain
    static_assert(small_grain == 1 << fine_shift && large_grain == 1 << coarse_shift);

    using Entry = std::atomic<Block*>;
    /// Each unit holds a table's address. The lowest bit is set for a fine table, which has an
    /// entry for each small grain.
    struct Leaf {
        std::atomic<std::uintptr_t> units[leaf_units] = {};
    };

    static Entry* entries(std::uintptr_t table) noexcept {
        return reinterpret_cast<Entry*>(table & ~std::uintptr_t{1});
    }
    static std::size_t index(std::uintptr_t bits, std::uintptr_t table) noexcept {
        const unsigned shift = (table & 1) != 0 ? fine_shift : coarse_shift;
        return (bits & ((std::uintptr_t{1} << unit_shift) - 1)) >> shift;
    }

    Block* find_beyond(std::uintptr_t bits) const noexcept;
    void put(const std::byte* address, Block* block) noexcept;
    std::atomic<std::uintptr_t>& unit_of(std::uintptr_t bits);
    std::uintptr_t make_table(bool fine);
    void refine(std::atomic<std::uintptr_t>& unit);

    std::atomic<Leaf*> root_[std::size_t{1} << (address_bits - leaf_shift)] = {};
    std::vector<std::unique_ptr<Leaf>> leaves_;
    std::vector<std::unique_ptr<Entry[]>> tables_;  // including replaced ones
    mutable std::mutex mutex_;                      // guards what follows
    std::unordered_map<std::uintptr_t, Block*> beyond_;
};

}  // namespace tensorpool::device
