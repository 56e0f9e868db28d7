#pragma once

/// @file
/// Memory for a loop that makes the same requests again and again. Sizes are bytes.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/detail/plan_tables.hpp>
#include <tensorpool/detail/thread_cache.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/planned_arena_options.hpp>
#include <tensorpool/planned_arena_statistics.hpp>

namespace tensorpool {

namespace detail {
class PlannedState;
}  // namespace detail

/// Learns what one iteration of a loop asks for and when it frees that, lays the buffers out once
/// (`plan_memory`), and from then on serves each request from its own place, without a search:
///
///     PlannedArena arena;
///     for (const Batch& batch : batches) {
///         const IterationScope iteration(arena);
///         train(batch, arena);  // arena.allocate(…), arena.deallocate(…)
///     }
///
/// One thread at a time is its owner: it begins and ends iterations, and allocates; any thread may
/// free. Requests are told apart by their order, and by their sizes to 64 bytes. One that does not
/// come in its turn, is larger than it was, or whose bytes somebody still holds, goes to the pool
/// and is counted; one that was left out is stepped over. So it never hands out memory in use,
/// whatever the program does. When drift lasts it learns anew.
///
/// A block that is still held when the iteration that asked for it ends is left out of the plan:
/// that request goes to the pool also when it comes again. So buffers that pass from one iteration
/// to the next (double buffering, gradients that are kept) cost what the pool costs. So does what
/// is asked for outside of iterations.
///
/// In the child of a fork the arena goes on, for the thread that forked; what other threads held is
/// held for ever, and a plan that lay with the executor never comes: it learns anew.
class TENSORPOOL_API PlannedArena {
public:
    /// Throws std::invalid_argument for options that make no sense.
    explicit PlannedArena(PlannedArenaOptions options = {});
    /// Gives all memory back, blocks in use included. No other call may be under way; a plan may
    /// still lie with the executor.
    ~PlannedArena();
    PlannedArena(const PlannedArena&) = delete;
    PlannedArena& operator=(const PlannedArena&) = delete;

    /// The calling thread is the owner from now on. Throws std::logic_error inside an iteration.
    void begin_iteration();
    /// Throws std::logic_error outside of an iteration. Where there is no memory for a plan, it
    /// goes on without one, and tries again after some iterations.
    void end_iteration();

    /// At least `bytes`, aligned to `alignment` and to 64; nullptr for 0, which no plan counts. The
    /// content is undefined. Throws AllocationError (a std::bad_alloc) when it is the pool's turn
    /// and that has none, and std::invalid_argument unless `alignment` is a power of two; the arena
    /// is then as it was. The owner's.
    void* allocate(std::size_t bytes, std::size_t alignment = 64);
    /// As above, but returns nullptr instead of throwing.
    void* try_allocate(std::size_t bytes, std::size_t alignment = 64) noexcept;
    /// Gives a block back; nullptr is ignored. Any thread. What is not a block that this arena
    /// handed out, and a block freed twice, stops the program with a line on stderr, save a block
    /// of the pool's freed twice that has been handed out again.
    void deallocate(void* p) noexcept;
    /// The same; no faster.
    void deallocate(void* p, std::size_t) noexcept { deallocate(p); }

    /// Drops the plan, which goes when its last block is freed, and learns anew: for a loop that
    /// will be another one. Throws std::logic_error inside an iteration.
    void relearn();

    /// Writes the plan, with what it was learned from, versioned and with checksums. The owner's.
    /// Throws std::logic_error where no plan serves, std::system_error where the file cannot be
    /// opened, and std::runtime_error where not all of it could be written.
    void save(const std::string& path) const;
    void save(std::ostream& out) const;
    /// Serves that plan from the next iteration on, in place of the present one. Nothing in the
    /// file is trusted, and the plan is proved to hold. Throws std::runtime_error that names the
    /// file, the field, what was found and what was expected; std::system_error where the file
    /// cannot be opened; AllocationError where there is no memory for the plan; std::logic_error
    /// inside an iteration. The arena is then as it was.
    void load(const std::string& path);
    void load(std::istream& in);
    /// Of the sequence that the plan is for: of the sizes, to 64 bytes, the alignments and the
    /// order of its requests. 0 where no plan serves. The owner's.
    std::uint64_t sequence_checksum() const;

    /// What is held now and what was done. Any thread.
    PlannedArenaStatistics statistics() const noexcept;
    const std::string& name() const noexcept;

private:
    friend class detail::PlannedState;

    void* take_next(std::size_t bytes, std::size_t alignment) noexcept;
    void* allocate_slow(std::size_t bytes, std::size_t alignment);
    void* try_allocate_slow(std::size_t bytes, std::size_t alignment) noexcept;
    void deallocate_slow(void* p) noexcept;
    bool is_first_owner() const noexcept {
        return first_owner_.load(std::memory_order_relaxed) == &detail::thread_table;
    }

    // The owner's. `next_` is the slot whose turn it is, or one that takes nothing.
    alignas(64) const detail::PlannedBuffer* next_;
    detail::PlanTables* tables_ = nullptr;
    detail::Counter* served_;
    detail::Counter* served_bytes_;

    // Read by threads that free. The range is that of the plan that serves: relaxed, for who holds
    // a block of it was handed that after the range was stored, and to all others it is only a
    // number. The first owner, told by the address of a variable that each thread has, counts what
    // it frees by plain stores, and nobody else ever does: it may be in the middle of that while
    // another becomes the owner.
    alignas(64) std::atomic<std::uint64_t> range_ = 0;
    std::atomic<const void*> first_owner_ = nullptr;
    detail::Counter* freed_bytes_;            // by the first owner
    detail::Counter* freed_elsewhere_bytes_;  // by any other thread
    std::unique_ptr<detail::PlannedState> state_;
};

/// An iteration from here to the end of the block.
class IterationScope {
public:
    explicit IterationScope(PlannedArena& arena) : arena_(arena) { arena.begin_iteration(); }
    ~IterationScope() { arena_.end_iteration(); }
    IterationScope(const IterationScope&) = delete;
    IterationScope& operator=(const IterationScope&) = delete;

private:
    PlannedArena& arena_;
};

inline void* PlannedArena::take_next(std::size_t bytes, std::size_t alignment) noexcept {
    const detail::PlannedBuffer& slot = *next_;
    if (!slot.is_for(bytes, alignment) || !tables_->are_before_free(slot)) [[unlikely]]
        return nullptr;
    next_ = &slot + 1;
    tables_->hand_out(slot);
    detail::add(*served_, 1);
    detail::add(*served_bytes_, slot.bytes);
    return slot.address;
}

inline void* PlannedArena::allocate(std::size_t bytes, std::size_t alignment) {
    void* const block = take_next(bytes, alignment);
    return block != nullptr ? block : allocate_slow(bytes, alignment);
}

inline void* PlannedArena::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    void* const block = take_next(bytes, alignment);
    return block != nullptr ? block : try_allocate_slow(bytes, alignment);
}

inline void PlannedArena::deallocate(void* p) noexcept {
    const detail::PlanRange range(range_.load(std::memory_order_relaxed));
    if (!range.holds(p)) return deallocate_slow(p);
    detail::PlanTables& tables = range.tables();
    const std::uint32_t slot = tables.held_at(p);
    if (slot == detail::PlanTables::no_buffer) [[unlikely]]
        return deallocate_slow(p);
    const std::uint64_t bytes = tables.slots[slot].bytes;
    if (is_first_owner()) {
        detail::add_release(*freed_bytes_, bytes);
    } else {
        freed_elsewhere_bytes_->fetch_add(bytes, std::memory_order_release);
    }
    tables.take_back(slot);
}

}  // namespace tensorpool
