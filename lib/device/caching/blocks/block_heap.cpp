#include "device/caching/blocks/block_heap.hpp"

namespace tensorpool::device {

BlockMap::~BlockMap() = default;

void BlockMap::cover(const void* address, Pool pool) {
    const auto bits = reinterpret_cast<std::uintptr_t>(address);
    if (bits >> address_bits != 0) {
        const std::lock_guard guard(mutex_);
        beyond_.emplace(bits >> fine_shift, nullptr);
        return;
    }
    std::atomic<std::uintptr_t>& unit = unit_of(bits);
    const std::uintptr_t table = unit.load(std::memory_order_relaxed);
    const bool fine = pool == Pool::small;
    if (table == 0) unit.store(make_table(fine), std::memory_order_release);
    if (table != 0 && fine && (table & 1) == 0) refine(unit);
}

std::atomic<std::uintptr_t>& BlockMap::unit_of(std::uintptr_t bits) {
    std::atomic<Leaf*>& leaf = root_[bits >> leaf_shift];
    if (leaf.load(std::memory_order_relaxed) == nullptr) {
        leaves_.push_back(std::make_unique<Leaf>());
        // Pairs with the acquire in `find`, as do the other release stores here.
        leaf.store(leaves_.back().get(), std::memory_order_release);
    }
    return leaf.load(std::memory_order_relaxed)->units[bits >> unit_shift & (leaf_units - 1)];
}

std::uintptr_t BlockMap::make_table(bool fine) {
    const std::size_t count = std::size_t{1} << (unit_shift - (fine ? fine_shift : coarse_shift));
    tables_.push_back(std::make_unique<Entry[]>(count));
    return reinterpret_cast<std::uintptr_t>(tables_.back().get()) | (fine ? 1 : 0);
}

/// Replaces a coarse table with a fine one. Needed if a unit has held large blocks and now holds
/// small ones: the device handed its addresses out again, or two slabs share it, because the
/// backend does not align them to 2 MiB.
void BlockMap::refine(std::atomic<std::uintptr_t>& unit) {
    const std::uintptr_t coarse = unit.load(std::memory_order_relaxed);
    const std::uintptr_t fine = make_table(true);
    for (std::size_t i = 0; i < std::size_t{1} << (unit_shift - coarse_shift); ++i) {
        Block* const block = entries(coarse)[i].load(std::memory_order_relaxed);
        if (block == nullptr) continue;
        const auto bits = reinterpret_cast<std::uintptr_t>(block->address);
        entries(fine)[index(bits, fine)].store(block, std::memory_order_relaxed);
    }
    unit.store(fine, std::memory_order_release);
}

void BlockMap::put(const std::byte* address, Block* block) noexcept {
    const auto bits = reinterpret_cast<std::uintptr_t>(address);
    if (bits >> address_bits != 0) {
        const std::lock_guard guard(mutex_);
        if (const auto found = beyond_.find(bits >> fine_shift); found != beyond_.end()) {
            found->second = block;
        }
        return;
    }
    const Leaf* const leaf = root_[bits >> leaf_shift].load(std::memory_order_relaxed);
    if (leaf == nullptr) return;  // no block was handed out there
    const std::uintptr_t table =
        leaf->units[bits >> unit_shift & (leaf_units - 1)].load(std::memory_order_relaxed);
    if (table != 0) entries(table)[index(bits, table)].store(block, std::memory_order_release);
}

Block* BlockMap::find_beyond(std::uintptr_t bits) const noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = beyond_.find(bits >> fine_shift);
    return found == beyond_.end() ? nullptr : found->second;
}

}  // namespace tensorpool::device
