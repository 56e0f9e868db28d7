#pragma once

/// @file
/// Memory that goes all at once. Sizes are bytes unless a name says otherwise.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/arena_objects.hpp>
#include <tensorpool/arena_options.hpp>
#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace detail {
class ArenaClaims;
class ArenaReleases;
class ArenaState;
}  // namespace detail

/// Hands out memory from the front of one range of addresses and takes it back by marks. The range
/// is reserved when the arena is made and committed as it grows: what was handed out never moves,
/// and growing copies nothing and fills nothing.
///
/// `allocate`, `try_allocate`, `mark` and the figures may be called from any thread at any time
/// (see Sharing); `release_to`, `reset`, `trim`, `reserve` and the destructor want no other call to
/// be under way.
class TENSORPOOL_API Arena {
public:
    /// A place to come back to. Valid until a release goes below it.
    class Mark {
    public:
        /// Of no arena.
        constexpr Mark() noexcept = default;
        /// What the arena had in use when the mark was made.
        constexpr std::size_t offset() const noexcept { return offset_; }

    private:
        friend class Arena;
        friend class detail::ArenaReleases;
        std::uint64_t arena_ = 0;
        std::uint64_t releases_ = 0;
        std::size_t offset_ = 0;
    };

    /// Memory of its own. Throws std::invalid_argument for options that make no sense, and
    /// AllocationError when the address space or the initial capacity cannot be had.
    explicit Arena(ArenaOptions options = {});
    /// Memory of the caller's, which must outlive the arena and is never freed by it: it never
    /// grows. What lies before the first multiple of the alignment is not used. Sizes of growth
    /// have no meaning in the options.
    static Arena over(std::span<std::byte> buffer);
    static Arena over(std::span<std::byte> buffer, ArenaOptions options);
    /// No memory at all: it hands out addresses, distinct, aligned and never nullptr, that must not
    /// be touched, and `peak()` then tells what the same run needs of a real arena with the same
    /// options: one that is reserved to that figure does not grow in it. `max_allocation` holds,
    /// `max_capacity` does not.
    static Arena measuring();
    static Arena measuring(ArenaOptions options);

    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    /// At least `bytes`, aligned to `alignment` and to the arena's own; nullptr for 0. The content
    /// is undefined. Throws AllocationError (a std::bad_alloc) when it cannot be had, at once when
    /// it is more than `max_allocation`, and std::invalid_argument unless `alignment` is a power of
    /// two; the arena is then as it was.
    void* allocate(std::size_t bytes, std::size_t alignment = default_alignment);
    /// As above, but returns nullptr instead of throwing.
    void* try_allocate(std::size_t bytes, std::size_t alignment = default_alignment) noexcept;

    /// Records nothing: costs a few loads, and a wait amid the growth by another thread.
    Mark mark() const noexcept;
    /// Ends everything that was allocated since the mark was made. Releasing to the same mark again
    /// and again is the normal loop. Throws std::invalid_argument, changing nothing, for a mark of
    /// another arena, a mark that lies ahead of what is in use, and a stale one: a release went
    /// below it since.
    void release_to(Mark mark);
    /// To an offset that `used()` gave. Throws std::invalid_argument, changing nothing, for one
    /// that lies ahead and for one that is no multiple of the alignment; no other can be told from
    /// a good one.
    void release_to(std::size_t offset);
    /// Ends everything.
    void reset() noexcept;

    /// Commits until `capacity()` is at least `bytes`, touched and ready. Throws AllocationError,
    /// changing nothing, when that is beyond what was reserved or cannot be had. A measuring arena
    /// has nothing to make ready.
    void reserve(std::size_t bytes);
    /// Gives back to the system what lies above what is in use, whatever was reserved or retained.
    /// Returns the bytes given back.
    std::size_t trim() noexcept;

    /// Bytes handed out and not released, padding for alignment included.
    std::size_t used() const noexcept;
    /// The most that `used()` ever was.
    std::size_t peak() const noexcept;
    /// Bytes committed; of a measuring arena 0.
    std::size_t capacity() const noexcept;
    /// Bytes of address space; of a measuring arena 0.
    std::size_t reserved() const noexcept;
    /// Bytes until the next growth, or until the buffer is full.
    std::size_t available() const noexcept;
    std::size_t alignment() const noexcept { return granule_mask_ + 1; }
    const std::string& name() const noexcept;
    ArenaStatistics statistics() const noexcept;

    /// Tells the register (see ArenaOptions::objects) what lies at `data`, which this arena handed
    /// out. A release that ends it takes it from the register, with its views. Any thread. Throws
    /// std::invalid_argument when it does not lie within what is in use. Without a register it does
    /// nothing and returns 0.
    ObjectId record(const void* data, ObjectDescription object);
    /// The same for a view that begins `offset` bytes into the object `of`, or into a view. Throws
    /// std::invalid_argument when there is no such object or the view reaches beyond it.
    ObjectId record_view(ObjectId of, std::size_t offset, ObjectDescription view);
    /// A copy of the register, in the order of recording.
    std::vector<ArenaObject> objects() const;
    ArenaAnalysis analyze() const;

private:
    friend class detail::ArenaClaims;
    friend class detail::ArenaReleases;
    friend class detail::ArenaState;
    struct Over;
    struct Measuring;
    explicit Arena(Over over);
    explicit Arena(Measuring measuring);
    void set_up(std::byte* base) noexcept;

    static constexpr std::size_t default_alignment = 64;
    // The top holds the offset of the next block, and above it how often claims were cancelled.
    static constexpr unsigned offset_bits = 48;
    static constexpr std::uint64_t offset_mask = (std::uint64_t{1} << offset_bits) - 1;

    void* allocate_slow(std::size_t bytes, std::size_t alignment);
    void* settle_or_throw(std::uint64_t claim, std::size_t bytes);
    void* take_one_threads(std::size_t size) noexcept;

    // Read by every allocation, in one cache line. `end_` only grows while allocations may be under
    // way.
    alignas(64) std::byte* base_ = nullptr;
    std::size_t granule_mask_ = 0;
    // A larger request takes the slow path; in an arena of one thread with checks all do.
    // Atomic, for another thread may begin to record calls, which sends all there. Relaxed: a call
    // that is under way may be the last one unseen.
    std::atomic<std::size_t> quick_bytes_ = 0;
    bool shared_ = true;
    std::atomic<std::size_t> end_ = 0;  // bytes from base_ that may be used
    // Written by every allocation. It lies in a line of its own, in the record of the arena, where
    // other processes may read it.
    std::atomic<std::uint64_t>* top_ = nullptr;
    std::unique_ptr<detail::ArenaState> state_;
};

/// Marks an arena when it is made and releases to that mark when it goes. One that finds its mark
/// stale, because a release went below it meanwhile, does nothing.
class TENSORPOOL_API ArenaScope {
public:
    explicit ArenaScope(Arena& arena) noexcept : arena_(&arena), mark_(arena.mark()) {}
    ~ArenaScope();
    ArenaScope(const ArenaScope&) = delete;
    ArenaScope& operator=(const ArenaScope&) = delete;

private:
    Arena* arena_;
    Arena::Mark mark_;
};

inline void* Arena::take_one_threads(std::size_t size) noexcept {
    const std::uint64_t start = top_->load(std::memory_order_relaxed);
    if (size > end_.load(std::memory_order_relaxed) - start) return nullptr;
    top_->store(start + size, std::memory_order_relaxed);
    return base_ + start;
}

inline void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
    // 0 wraps round and leaves by the same comparison, for bytes as for alignment.
    if (bytes - 1 >= quick_bytes_.load(std::memory_order_relaxed) ||
        alignment - 1 > granule_mask_ || !std::has_single_bit(alignment)) [[unlikely]] {
        return allocate_slow(bytes, alignment);
    }
    const std::size_t size = (bytes + granule_mask_) & ~granule_mask_;
    if (!shared_) {
        void* const block = take_one_threads(size);
        return block != nullptr ? block : allocate_slow(bytes, alignment);
    }
    // The end is read before the claim is made: a claim that was cancelled since then lies above
    // it.
    const std::size_t end = end_.load(std::memory_order_acquire);
    const std::uint64_t claim = top_->fetch_add(size, std::memory_order_relaxed);
    const std::size_t start = claim & offset_mask;
    if (start + size <= end) [[likely]]
        return base_ + start;
    return settle_or_throw(claim, bytes);
}

}  // namespace tensorpool
