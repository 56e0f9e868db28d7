#pragma once

#include "blocks/bucket.hpp"

namespace tensorpool::blocks {

// A wide state is 1 plus the bytes of the block that were not requested. 16 bits suffice for every
// bucket: the largest, 64 KiB, serves only requests above 32 KiB.
inline std::size_t Bucket::requested_bytes_of(std::uint16_t wide_state) const noexcept {
    return wide_state == 0 ? 0 : 1 + block_bytes() - wide_state;
}

inline void Bucket::begin_use(const void* block, std::size_t requested_bytes) noexcept {
    const pages::PageEntry entry = sources().heap.space().map().at(block);
    pages::BlockStates& states = *entry.span()->states.load(std::memory_order_relaxed);
    const char* const first = states.first_block.load(std::memory_order_relaxed);
    const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(block) - first);
    const std::uint64_t index = layout().index_at(offset);
    // Release: the states may have belonged to another span before. A thread that still reads them
    // for that span and sees this store also sees that the span has left the page map.
    if (sources().states == States::uses) {
        states.state(index).store(1, std::memory_order_release);
    } else {
        const auto wide = static_cast<std::uint16_t>(1 + block_bytes() - requested_bytes);
        states.wide_state(index).store(wide, std::memory_order_release);
    }
}

inline bool Bucket::begin_first_use(const void* block, std::size_t requested_bytes,
                                    pages::BlockOrigin origin) noexcept {
    const pages::PageEntry entry = sources().heap.space().map().at(block);
    if (!traits_.is_ours(entry)) return false;
    pages::BlockStates* const states = entry.span()->states.load(std::memory_order_relaxed);
    if (states == nullptr) return false;
    const char* const first = states->first_block.load(std::memory_order_relaxed);
    const std::uint64_t index = layout().checked_index_at(reinterpret_cast<std::uintptr_t>(block) -
                                                          reinterpret_cast<std::uintptr_t>(first));
    if (index == layout().blocks) return false;
    if (states->wide_state(index).load(std::memory_order_relaxed) != 0) return false;
    // Relaxed: the state, which is stored next, publishes it.
    states->origin(index, layout().blocks).store(origin, std::memory_order_relaxed);
    begin_use(block, requested_bytes);
    return true;
}

inline pages::BlockStates::Origin& Bucket::origin_of(const void* block,
                                                     pages::PageEntry entry) noexcept {
    pages::BlockStates& states = *entry.span()->states.load(std::memory_order_relaxed);
    const char* const first = states.first_block.load(std::memory_order_relaxed);
    const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(block) - first);
    return states.origin(layout().index_at(offset), layout().blocks);
}

inline bool Bucket::end_use(const void* p, pages::PageEntry entry, std::size_t max_requested,
                            EndedUse* ended) noexcept {
    const std::atomic<pages::BlockStates*>& of_span = entry.span()->states;
    pages::BlockStates* const states = of_span.load(std::memory_order_acquire);
    if (states == nullptr) return false;
    const char* const first = states->first_block.load(std::memory_order_relaxed);
    const std::uint64_t index = layout().checked_index_at(reinterpret_cast<std::uintptr_t>(p) -
                                                          reinterpret_cast<std::uintptr_t>(first));
    if (index == layout().blocks) return false;
    // If several threads free one block at the same time, the exchange lets only one of them find
    // it in use.
    if (sources().states == States::uses) {
        if (states->state(index).exchange(0, std::memory_order_acq_rel) == 0) return false;
    } else {
        pages::BlockStates::WideState& state = states->wide_state(index);
        const std::uint16_t seen = state.load(std::memory_order_relaxed);
        if (requested_bytes_of(seen) > max_requested) return false;
        const std::uint16_t last = state.exchange(0, std::memory_order_acq_rel);
        if (last == 0) return false;
        if (ended != nullptr) {
            // Relaxed: only the thread that ended the use reads it.
            const auto order = std::memory_order_relaxed;
            *ended = {requested_bytes_of(last), states->origin(index, layout().blocks).load(order)};
        }
    }
    // A block in use keeps its span. If `p` was not in use, the span and its states may have been
    // reused while they were read. These comparisons detect that.
    return sources().heap.space().map().at(p).word() == entry.word() &&
           of_span.load(std::memory_order_relaxed) == states &&
           states->first_block.load(std::memory_order_relaxed) == first;
}

}  // namespace tensorpool::blocks
