#pragma once

/// @file
/// The tables from which a plan is served: its buffers and their states. Layer `planned`.
///
/// A plan repeats: buffer 0, buffer 1, … to the last, then buffer 0 again. The moment at which the
/// sequence reaches a buffer is its *turn*. Two buffers may share bytes if, in the learned
/// iteration, one was freed before the other was requested. A caller may free later this time, so
/// before a buffer is handed out, all buffers that share bytes with it must be free. It is enough
/// to check its predecessors:
///
///     The *predecessors* of buffer s are found byte by byte. For each byte of s, the predecessor
///     is the buffer with that byte whose turn comes last before the turn of s. If no other buffer
///     has the byte, it is s itself, one round earlier.
///
/// A buffer has one of three states:
///  - *held*: a caller holds its block;
///  - *free*: it is not held, and at its last turn it was handed out or was held;
///  - *passed*: it is not held, and at its last turn it was not handed out.
///
/// Rule 1: a buffer is handed out only at its turn, and only if every buffer that shares a byte
/// with it is free or passed. Rule 2: rule 1 holds if all predecessors are free. If some are
/// passed, the same must hold for their predecessors, and so on, as far as these share bytes with
/// the buffer (`plan/pool_requests.hpp`).
///
/// Proof that rule 2 implies rule 1. Take a byte of s, and the predecessor b of s that has it.
/// Between the turn of b and that of s, no buffer with this byte has its turn, so none is handed
/// out. There are three cases for the last turn of b:
///  - b was handed out. Then no other buffer with the byte was held at that moment (rule 1), and
///    none was handed out since. Only b can be held.
///  - b was still held, by a caller that frees late. From the moment when that caller got it until
///    that turn, no other buffer with the byte could be handed out (rule 1), nor after that turn.
///  - b had no turn because the plan is new. Then no buffer with the byte had its turn.
/// So once b is free, the byte is free. tests/plan/planned_model_test.cpp compares this with a
/// map of all bytes.

#include <bit>

#include <tensorpool/detail/address_range.hpp>

namespace tensorpool::detail {
inline namespace abi_2 {

/// Offsets and sizes of a plan's buffers are multiples of this number of bytes.
inline constexpr std::size_t plan_granule_bytes = 64;

/// One request of the learned iteration, and its address in the plan. An array of them ends with a
/// sentinel that matches no request.
struct PlannedBuffer {
    std::byte* address = nullptr;  // nullptr: the pool serves this request
    std::uint64_t bytes = 0;
    std::uint32_t max_alignment = 0;      // 0: matches no request
    std::uint32_t first_predecessor = 0;  // index in PlanTables::predecessors
    std::uint32_t predecessor_count = 0;
    std::uint32_t start = 0;  // index in PlanTables::starts

    /// Returns whether a request has the learned size, up to one granule, and at most the learned
    /// alignment.
    bool is_for(std::size_t requested, std::size_t alignment) const noexcept {
        return bytes - requested < plan_granule_bytes && alignment <= max_alignment &&
               std::has_single_bit(alignment);
    }
};
static_assert(sizeof(PlannedBuffer) == 32);

enum class BufferState : std::uint8_t { free, held, passed };

/// An entry of the hash table from an offset of the plan to the buffer held there. Of the buffers
/// that begin at one offset, at most one is held at any time.
struct PlanStart {
    std::uint32_t granule_and_one = 0;  // 0: no entry
    // The last buffer that was handed out at this offset. Relaxed: the owner writes it before it
    // hands out the block, and only a thread that was given the block reads it.
    std::atomic<std::uint32_t> buffer = 0;
};

/// The tables of one plan. They lie in pages of their own, out of the plan's memory. A thread that
/// holds a block of the plan may read them.
struct PlanTables {
    static constexpr std::uint32_t no_buffer = UINT32_MAX;
    /// The maximum size of a plan: 256 GiB less a page, because granules are numbered in 32 bits.
    static constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 38) - 4096;
    // The page map's word for memory of a plan: the address of an object of `owner_bytes` bytes,
    // directly in front of the tables, and a kind.
    static constexpr std::uint64_t page_kind = 28;
    static constexpr std::uint64_t kind_mask = 63;
    static constexpr std::uint64_t owner_mask = (std::uint64_t{1} << 48) - 64;
    static constexpr std::size_t owner_bytes = 64;

    const void* arena;  // its PlannedArena; nullptr once that was destroyed
    std::byte* base;    // of the plan's memory; changes while no buffer is held
    PlannedBuffer* buffers;
    const std::uint32_t* predecessors;
    // The owner stores a state when it hands out a buffer, the freeing thread when it frees it;
    // never both at once. The release store of a free pairs with the owner's acquire load before it
    // hands out the bytes again. All other accesses are relaxed: the owner reads its own stores.
    std::atomic<BufferState>* states;
    PlanStart* starts;
    std::uint32_t start_mask;  // number of starts, a power of two, less one
    std::uint32_t count;       // number of buffers

    std::uint32_t number_of(const PlannedBuffer& buffer) const noexcept {
        return static_cast<std::uint32_t>(&buffer - buffers);
    }

    /// Returns whether all predecessors of a buffer are free (rule 2 at the top of this file).
    bool are_predecessors_free(const PlannedBuffer& buffer) const noexcept {
        const std::uint32_t* number = predecessors + buffer.first_predecessor;
        const std::uint32_t* const end = number + buffer.predecessor_count;
        for (; number != end; ++number) {
            if (states[*number].load(std::memory_order_acquire) != BufferState::free) return false;
        }
        return true;
    }

    /// Marks a buffer as held. The owner only.
    void hand_out(const PlannedBuffer& buffer) noexcept {
        const std::uint32_t number = number_of(buffer);
        states[number].store(BufferState::held, std::memory_order_relaxed);
        starts[buffer.start].buffer.store(number, std::memory_order_relaxed);
    }

    /// Returns the number of the held buffer that begins at `p`, or `no_buffer` if there is none.
    /// Requires: `p` lies within the plan's memory.
    std::uint32_t held_at(const void* p) const noexcept {
        const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - base);
        if (offset % plan_granule_bytes != 0) return no_buffer;
        const auto wanted = static_cast<std::uint32_t>(offset / plan_granule_bytes) + 1;
        for (std::uint32_t at = hash(wanted);; ++at) {
            const PlanStart& start = starts[at & start_mask];
            if (start.granule_and_one == wanted) [[likely]]
                return if_held(start.buffer.load(std::memory_order_relaxed));
            if (start.granule_and_one == 0) return no_buffer;
        }
    }

    /// Marks a buffer as free. This is the freeing thread's last access: the plan may be destroyed
    /// right after it.
    void take_back(std::uint32_t buffer) noexcept {
        states[buffer].store(BufferState::free, std::memory_order_release);
    }

    /// Fibonacci hashing: multiplies by 2^64 divided by the golden ratio (Knuth, The Art of
    /// Computer Programming, vol. 3, 6.4).
    static std::uint32_t hash(std::uint32_t granule_and_one) noexcept {
        return static_cast<std::uint32_t>((granule_and_one * 0x9E3779B97F4A7C15u) >> 32);
    }

private:
    std::uint32_t if_held(std::uint32_t buffer) const noexcept {
        return states[buffer].load(std::memory_order_relaxed) == BufferState::held ? buffer
                                                                                   : no_buffer;
    }
};

/// Returns the tables of the plan whose memory contains `p`, or nullptr if none does. The caller
/// holds the block at `p`, so that its plan stays.
inline PlanTables* plan_tables_at(const void* p) noexcept {
    if (!pool_addresses.contains(p)) return nullptr;
    // The page map's word refers to the owner of the plan's pages; the tables follow it.
    const std::uint64_t word = pool_addresses.page_word(p);
    if ((word & PlanTables::kind_mask) != PlanTables::page_kind) return nullptr;
    const std::uint64_t owner = word & PlanTables::owner_mask;
    return reinterpret_cast<PlanTables*>(static_cast<std::uintptr_t>(owner) +
                                         PlanTables::owner_bytes);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
