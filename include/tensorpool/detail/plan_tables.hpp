#pragma once

/// @file
/// What serves a plan: its slots, and who holds them. Layer `planned`.
///
/// A plan repeats: slot 0, slot 1, … to the last, and again. Slots may share bytes when in the
/// learned iteration the one was freed before the other was asked for. Nothing keeps a caller from
/// freeing later this time, so before a slot is handed out, all slots that share bytes with it must
/// be free. To look at a few is enough:
///
///     The slots *before* slot s are those that, for some byte of s, come last in turn before s
///     among all slots with that byte; s itself, once round, is one of them if no other has it.
///
/// Three states a slot has: *held*; *free*: when its turn was last, it was handed out or held; and
/// *passed*: it was not. The rule: a slot is handed out only in its turn, and only if every slot
/// with a byte of it is free or passed (rule 1), which holds if those before it are free (rule 2),
/// or if, for those that are passed, the same holds of those before them, and so on, as far as they
/// share bytes with it (`planned/follower.cpp`).
///
/// Why rule 2 is enough. Take a byte of s, and the slot b before s that has it. Between the turn of
/// b and that of s no slot with this byte has its turn, so none was handed out. If b was handed out
/// in its last turn, then no other slot with the byte was held at that moment (rule 1), none was
/// handed out since, and only b can be held. If b was held by a late owner when its turn came, then
/// from the moment when that one got it (rule 1) until that turn nobody else could get the byte
/// (rule 1 again), nor after it. If it is free because the plan is new, no slot with the byte had
/// its turn. So once b is free, the byte is. tests/planned/planned_model_test.cpp holds this
/// against a map of all bytes.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tensorpool::detail {
inline namespace abi_2 {

/// Slots begin at multiples of it and take multiples of it.
inline constexpr std::size_t plan_granule_bytes = 64;

/// A request of the learned iteration, and where the plan puts it. An array of them ends with one
/// that takes nothing.
struct PlannedBuffer {
    std::byte* address = nullptr;  // nullptr: the plan leaves it to the pool
    std::uint64_t bytes = 0;
    std::uint32_t max_alignment = 0;  // 0: takes nothing
    std::uint32_t first_before = 0;   // among PlanTables::predecessors
    std::uint32_t before_count = 0;
    std::uint32_t start = 0;  // among PlanTables::starts

    /// It is what this request asked for when it was learned, to the granule.
    bool is_for(std::size_t asked, std::size_t alignment) const noexcept {
        return bytes - asked < plan_granule_bytes && alignment <= max_alignment &&
               std::has_single_bit(alignment);
    }
};
static_assert(sizeof(PlannedBuffer) == 32);

enum class BufferState : std::uint8_t { free, held, passed };

/// Who has the block that begins at some place of the plan: no two slots that begin there are ever
/// held at once.
struct PlanStart {
    std::uint32_t granule_and_one = 0;  // 0: no entry
    // The last slot that was handed out. Relaxed: written by the owner before it hands the block
    // on, and read by who was handed it.
    std::atomic<std::uint32_t> slot = 0;
};

/// Lies in pages of its own, at a distance in front of the plan's memory, and goes with it: who
/// holds a block of the plan may read it.
struct PlanTables {
    static constexpr std::uint32_t no_buffer = UINT32_MAX;

    std::byte* base;
    PlannedBuffer* slots;
    const std::uint32_t* predecessors;
    // The owner stores when it hands out, who frees when he does: never both at once. A free pairs,
    // release with acquire, with the owner's look before it hands the bytes out again. All else is
    // relaxed: the owner reads its own stores.
    std::atomic<BufferState>* states;
    PlanStart* starts;
    std::uint32_t start_mask;  // their number, a power of two, less one
    std::uint32_t count;       // of slots

    std::uint32_t number_of(const PlannedBuffer& slot) const noexcept {
        return static_cast<std::uint32_t>(&slot - slots);
    }

    /// Rule 2, above.
    bool are_before_free(const PlannedBuffer& slot) const noexcept {
        const std::uint32_t* before = predecessors + slot.first_before;
        for (const std::uint32_t* const end = before + slot.before_count; before != end; ++before) {
            if (states[*before].load(std::memory_order_acquire) != BufferState::free) return false;
        }
        return true;
    }

    void hand_out(const PlannedBuffer& slot) noexcept {
        const std::uint32_t number = number_of(slot);
        states[number].store(BufferState::held, std::memory_order_relaxed);
        starts[slot.start].slot.store(number, std::memory_order_relaxed);
    }

    /// The slot whose block begins at `p`, which lies in the plan, if it is held; or `no_buffer`.
    std::uint32_t held_at(const void* p) const noexcept {
        const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - base);
        if (offset % plan_granule_bytes != 0) return no_buffer;
        const auto wanted = static_cast<std::uint32_t>(offset / plan_granule_bytes) + 1;
        for (std::uint32_t at = hash(wanted);; ++at) {
            const PlanStart& start = starts[at & start_mask];
            if (start.granule_and_one == wanted) [[likely]]
                return if_held(start.slot.load(std::memory_order_relaxed));
            if (start.granule_and_one == 0) return no_buffer;
        }
    }

    /// The last that who frees does with the plan, for it may go at once.
    void take_back(std::uint32_t slot) noexcept {
        states[slot].store(BufferState::free, std::memory_order_release);
    }

    /// Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4): the golden ratio's bits.
    static std::uint32_t hash(std::uint32_t granule_and_one) noexcept {
        return static_cast<std::uint32_t>((granule_and_one * 0x9E3779B97F4A7C15u) >> 32);
    }

private:
    std::uint32_t if_held(std::uint32_t slot) const noexcept {
        return states[slot].load(std::memory_order_relaxed) == BufferState::held ? slot : no_buffer;
    }
};

/// Where the plan's memory lies, in one word, so that a thread that frees reads both ends at once.
class PlanRange {
public:
    constexpr PlanRange() noexcept = default;  // of no plan: holds nothing
    constexpr explicit PlanRange(std::uint64_t word) noexcept : word_(word) {}
    /// `base` is a multiple of 4 KiB.
    PlanRange(const std::byte* base, std::size_t bytes) noexcept
        : word_(page_of(base) << size_bits | (bytes + page - 1) / page) {}

    std::uint64_t word() const noexcept { return word_; }
    bool holds(const void* p) const noexcept {
        return page_of(p) - (word_ >> size_bits) < (word_ & max_pages);
    }
    /// Of the range that holds something.
    PlanTables& tables() const noexcept {
        const std::uint64_t base = (word_ >> size_bits) * page;
        return *reinterpret_cast<PlanTables*>(static_cast<std::uintptr_t>(base) - tables_distance);
    }

    /// The tables end so far in front of the memory, at a gap that nobody may touch: pages have
    /// 64 KiB at most.
    static constexpr std::size_t gap_bytes = std::size_t{64} << 10;
    static constexpr std::size_t tables_distance = gap_bytes + 64;
    static_assert(sizeof(PlanTables) <= 64);
    /// A plan has at most so many bytes, 256 GiB: granules are numbered with 32 bits.
    static constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 38) - 4096;

private:
    static constexpr std::uint64_t page = 4096;
    static constexpr unsigned size_bits = 28;
    static constexpr std::uint64_t max_pages = (std::uint64_t{1} << size_bits) - 1;
    static std::uint64_t page_of(const void* p) noexcept {
        return reinterpret_cast<std::uintptr_t>(p) / page;
    }

    std::uint64_t word_ = 0;
};

}  // namespace abi_2
}  // namespace tensorpool::detail
