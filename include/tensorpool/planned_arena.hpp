#pragma once

/// @file
/// Memory for a loop that makes the same requests in every iteration. Sizes are in bytes.

#include <iosfwd>
#include <memory>

#include <tensorpool/detail/plan_tables.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/planned_arena_options.hpp>
#include <tensorpool/planned_arena_statistics.hpp>

namespace tensorpool {

namespace detail {
class PlannedState;
}  // namespace detail
class ServeScope;

/// An arena that learns the requests and lifetimes of one iteration of a loop. It plans an offset
/// for each buffer once (`plan_memory`), and then serves each request from its offset without a
/// search:
///
///     PlannedArena arena;
///     for (const Batch& batch : batches) {
///         const IterationScope iteration(arena);
///         train(batch, arena);  // arena.allocate(…), arena.deallocate(…)
///     }
///
/// One thread at a time is the owner: it begins and ends iterations and allocates. Any thread may
/// free. Requests are identified by their order and by their sizes rounded up to 64 bytes. The pool
/// serves a request that comes out of turn, is larger than learned, or whose bytes are still held;
/// such requests are counted. A request that is left out is skipped. So the arena never hands out
/// memory in use, whatever the program does. If the program drifts from the plan for several
/// iterations, the arena learns again.
///
/// A block that is still held when its iteration ends is left out of the plan, and the pool serves
/// its request in later iterations too. So buffers that pass from one iteration to the next (double
/// buffering, kept gradients) cost as much as in the pool. So do requests outside of iterations.
///
/// After a fork, the arena continues in the child for the thread that forked. Blocks that other
/// threads held stay held. A plan that was being made by the executor is lost; the arena learns
/// again.
class TENSORPOOL_API PlannedArena {
public:
    /// Creates an arena that has no plan yet. Throws std::invalid_argument for invalid options.
    explicit PlannedArena(PlannedArenaOptions options = {});
    /// Releases all memory, blocks in use included. If a ServeScope used the arena, blocks of the
    /// plan, and those that the scope allocated from the pool, stay until they are freed through
    /// the global pool. No other call may be in progress; the executor may still be making a plan.
    ~PlannedArena();
    PlannedArena(const PlannedArena&) = delete;
    PlannedArena& operator=(const PlannedArena&) = delete;

    /// Begins an iteration and makes the calling thread the owner. Throws std::logic_error inside
    /// an iteration.
    void begin_iteration();
    /// Ends the iteration, and plans if enough was learned. Throws std::logic_error outside of an
    /// iteration. If there is no memory for a plan, the arena continues without one and tries again
    /// after some iterations. The owner only.
    void end_iteration();

    /// Allocates at least `bytes` bytes, aligned to `alignment` and to 64. Returns nullptr for 0
    /// bytes, which is not counted as a request. The content is undefined. Throws AllocationError
    /// (a std::bad_alloc) if the pool has to serve the request and cannot, and
    /// std::invalid_argument unless `alignment` is a power of two. The arena is then unchanged. The
    /// owner only.
    void* allocate(std::size_t bytes, std::size_t alignment = 64);
    /// Allocates at least `bytes` bytes, aligned to `alignment` and to 64. Returns nullptr for 0
    /// bytes, if there is no memory, or if `alignment` is not a power of two. The owner only.
    void* try_allocate(std::size_t bytes, std::size_t alignment = 64) noexcept;
    /// Frees a block; nullptr is ignored. Any thread. A pointer that is not a block of this arena,
    /// or a double free, stops the program with a message on stderr. One double free is not
    /// detected: that of a block of the pool that has been handed out again.
    void deallocate(void* p) noexcept;
    /// Frees a block, like `deallocate(p)`. The size is ignored and makes the call no faster.
    void deallocate(void* p, std::size_t) noexcept { deallocate(p); }
    /// Frees a block, like `deallocate(p)`; a handle (PooledAllocation) calls it. Size and
    /// alignment are ignored.
    void deallocate(void* p, std::size_t, std::size_t) noexcept { deallocate(p); }

    /// Drops the plan and learns again, for a loop that is about to change. The plan's memory is
    /// released when its last block is freed. Throws std::logic_error inside an iteration. The
    /// owner only.
    void relearn();

    /// Writes the plan and its request sequence to a file, with a version and checksums. Throws
    /// std::logic_error if there is no plan, std::system_error if the file cannot be opened, and
    /// std::runtime_error if it cannot be written completely. The owner only.
    void save(const std::string& path) const;
    /// Writes the plan and its request sequence to a stream, with a version and checksums. Throws
    /// std::logic_error if there is no plan, and std::runtime_error if it cannot be written
    /// completely. The owner only.
    void save(std::ostream& out) const;
    /// Reads a plan from a file and serves it from the next iteration on, in place of the current
    /// one. Every value is checked, and the plan is validated. Throws std::runtime_error that names
    /// the file, the field, what was found and what was expected; std::system_error if the file
    /// cannot be opened; AllocationError if there is no memory for the plan; std::logic_error
    /// inside an iteration. The arena is then unchanged. The owner only.
    void load(const std::string& path);
    /// Reads a plan from a stream and serves it from the next iteration on, in place of the current
    /// one. Every value is checked, and the plan is validated. Throws std::runtime_error that names
    /// the field, what was found and what was expected; AllocationError if there is no memory for
    /// the plan; std::logic_error inside an iteration. The arena is then unchanged. The owner only.
    void load(std::istream& in);
    /// Returns a checksum of the plan's request sequence: of the sizes rounded up to 64 bytes, the
    /// alignments and their order. Returns 0 if there is no plan. The owner only.
    std::uint64_t sequence_checksum() const;

    /// Returns a snapshot of the arena's memory and counters. Any thread.
    PlannedArenaStatistics statistics() const noexcept;
    /// Returns the name from the options, cut to 47 bytes. Any thread.
    const std::string& name() const noexcept;

private:
    friend class detail::PlannedState;
    friend class ServeScope;

    void* take_next(std::size_t bytes, std::size_t alignment) noexcept;
    void* allocate_slow(std::size_t bytes, std::size_t alignment);
    void* try_allocate_slow(std::size_t bytes, std::size_t alignment) noexcept;
    void deallocate_slow(void* p) noexcept;
    bool is_first_owner() const noexcept {
        return first_owner_.load(std::memory_order_relaxed) == &detail::thread_table;
    }

    // For the owner only. `next_` is the buffer whose turn it is, or a sentinel that matches no
    // request.
    alignas(64) const detail::PlannedBuffer* next_;
    detail::PlanTables* tables_ = nullptr;
    detail::Counter* served_;
    detail::Counter* served_bytes_;

    // Read by freeing threads. The first owner is identified by the address of a thread-local
    // variable. It counts its frees with plain stores. No other thread ever does so, because the
    // first owner may be within such a store while another thread becomes the owner.
    alignas(64) std::atomic<const void*> first_owner_ = nullptr;
    detail::Counter* freed_bytes_;            // freed by the first owner
    detail::Counter* freed_elsewhere_bytes_;  // freed by any other thread
    std::unique_ptr<detail::PlannedState> state_;
};

/// Begins an iteration when constructed and ends it when destroyed.
class IterationScope {
public:
    /// Begins an iteration of `arena`. Throws std::logic_error inside an iteration.
    explicit IterationScope(PlannedArena& arena) : arena_(arena) { arena.begin_iteration(); }
    ~IterationScope() { arena_.end_iteration(); }
    IterationScope(const IterationScope&) = delete;
    IterationScope& operator=(const IterationScope&) = delete;

private:
    PlannedArena& arena_;
};

inline void* PlannedArena::take_next(std::size_t bytes, std::size_t alignment) noexcept {
    const detail::PlannedBuffer& buffer = *next_;
    if (!buffer.is_for(bytes, alignment) || !tables_->are_predecessors_free(buffer)) [[unlikely]]
        return nullptr;
    next_ = &buffer + 1;
    tables_->hand_out(buffer);
    detail::add(*served_, 1);
    detail::add(*served_bytes_, buffer.bytes);
    return buffer.address;
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
    detail::PlanTables* const tables = detail::plan_tables_at(p);
    if (tables == nullptr || tables->arena != this) return deallocate_slow(p);
    const std::uint32_t buffer = tables->held_at(p);
    if (buffer == detail::PlanTables::no_buffer) [[unlikely]]
        return deallocate_slow(p);
    const std::uint64_t bytes = tables->buffers[buffer].bytes;
    if (is_first_owner()) {
        detail::add_release(*freed_bytes_, bytes);
    } else {
        freed_elsewhere_bytes_->fetch_add(bytes, std::memory_order_release);
    }
    tables->take_back(buffer);
}

}  // namespace tensorpool
