#pragma once

/// @file
/// An arena: memory that is allocated step by step and released all at once. Sizes are bytes unless
/// a name says otherwise.

#include <span>

#include <tensorpool/arena_objects.hpp>
#include <tensorpool/arena_options.hpp>
#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/detail/arena_words.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool {

namespace detail {
class ArenaClaims;
class ArenaHandles;
class ArenaReleases;
class ArenaState;
}  // namespace detail

/// Allocates from the front of one range of addresses and releases memory back to a mark.
///
/// The address range is reserved when the arena is made and committed as the arena grows. So a
/// block never moves, and growth neither copies nor fills memory.
///
/// Any thread may call `allocate`, `try_allocate`, `mark` and the functions that return statistics
/// at any time (see Sharing), and end handles. No other call, and no end of a handle, may run
/// during `release_to`, `reset`, `trim`, `reserve` or the destructor.
class TENSORPOOL_API Arena {
public:
    /// A position in an arena, to which the arena can be released. It is valid until a release goes
    /// below it.
    class Mark {
    public:
        /// Makes a mark of no arena.
        constexpr Mark() noexcept = default;
        /// Returns the bytes that the arena had in use when the mark was made.
        constexpr std::size_t offset() const noexcept { return offset_; }

    private:
        friend class Arena;
        friend class detail::ArenaReleases;
        std::uint64_t arena_ = 0;
        std::uint64_t releases_ = 0;
        std::size_t offset_ = 0;
    };

    /// Makes an arena with memory of its own. Throws std::invalid_argument for contradictory or
    /// out-of-range options, and AllocationError if the address space or the initial capacity is
    /// unavailable.
    explicit Arena(ArenaOptions options = {});
    /// Makes an arena over the caller's memory. It never grows and never frees `buffer`, which must
    /// outlive it. Bytes before the first multiple of the alignment (64) are not used.
    static Arena over(std::span<std::byte> buffer);
    /// Makes an arena with these options over the caller's memory. It never grows and never frees
    /// `buffer`, which must outlive it. Bytes before the first multiple of the alignment are not
    /// used, and options about growth are ignored. Throws std::invalid_argument for invalid
    /// options.
    static Arena over(std::span<std::byte> buffer, ArenaOptions options);
    /// Makes an arena without memory, which measures how much a run needs.
    ///
    /// It returns distinct, aligned addresses, never nullptr, that must not be touched. Afterwards
    /// `peak()` is what the same run needs of a real arena with the same options: after
    /// `reserve(peak())` that run does not grow it. `max_allocation` applies, `max_capacity`
    /// does not.
    static Arena measuring();
    /// Makes an arena with these options and without memory, which measures how much a run needs.
    ///
    /// It returns distinct, aligned addresses, never nullptr, that must not be touched. Afterwards
    /// `peak()` is what the same run needs of a real arena with the same options. `max_allocation`
    /// applies, `max_capacity` does not. Throws std::invalid_argument for invalid options.
    static Arena measuring(ArenaOptions options);

    /// Gives all memory of its own back, blocks in use included.
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    /// Allocates at least `bytes` bytes, aligned to `alignment` and to the arena's own alignment.
    /// The content is undefined. Returns nullptr for 0.
    ///
    /// Throws AllocationError (a std::bad_alloc) if the memory is unavailable or `bytes` exceeds
    /// `max_allocation`, and std::invalid_argument unless `alignment` is a power of two. The arena
    /// is then unchanged.
    void* allocate(std::size_t bytes, std::size_t alignment = default_alignment);
    /// Allocates at least `bytes` bytes, aligned to `alignment` and to the arena's own alignment.
    /// The content is undefined. Returns nullptr for 0, if the memory is unavailable, and unless
    /// `alignment` is a power of two.
    void* try_allocate(std::size_t bytes, std::size_t alignment = default_alignment) noexcept;

    /// Allocates a block for a handle: PooledAllocation(arena, bytes) calls it. Returns none for 0.
    /// Throws what `allocate` throws; the arena is then unchanged.
    ///
    /// Any thread may end the handle, also while others allocate. The block at the top is then
    /// returned, which counts as a release: marks above its beginning become stale. Any other block
    /// stays allocated until a release. If a release ended the block before, the end of the handle
    /// does nothing. With checks (ArenaOptions::checks), `release_to`, `reset` and ArenaScope stop
    /// the program if a handle above the mark has not ended; the message names the first.
    HeldBlock hold(std::size_t bytes, std::size_t alignment = default_alignment);
    /// A release may end a block before its handle: see ReleasingSource.
    static constexpr bool releases_blocks = true;

    /// Returns a mark of the present position. It costs a few loads; if another thread grows the
    /// arena or returns the block of a handle at that moment, it waits for that.
    Mark mark() const noexcept;
    /// Releases everything that was allocated since the mark was made. A loop may release to the
    /// same mark again and again. Throws std::invalid_argument, changing nothing, for a mark of
    /// another arena, for a mark ahead of what is in use, and for a stale mark: one below which the
    /// arena was released since.
    void release_to(Mark mark);
    /// Releases everything above `offset`, a value that `used()` returned. Throws
    /// std::invalid_argument, changing nothing, if the offset is ahead of what is in use or not a
    /// multiple of the alignment. Other wrong offsets cannot be detected.
    void release_to(std::size_t offset);
    /// Releases everything.
    void reset() noexcept;

    /// Commits and touches memory until `capacity()` is at least `bytes`. Throws AllocationError,
    /// changing nothing, if that exceeds the reserved address space or is unavailable. Does nothing
    /// in a measuring arena.
    void reserve(std::size_t bytes);
    /// Gives the committed memory above the blocks in use back to the system, including what was
    /// reserved or retained. Returns the number of bytes given back.
    std::size_t trim() noexcept;

    /// Returns the bytes allocated and not released, including padding for alignment.
    std::size_t used() const noexcept;
    /// Returns the highest value that `used()` ever had, in bytes.
    std::size_t peak() const noexcept;
    /// Returns the committed bytes; 0 for a measuring arena.
    std::size_t capacity() const noexcept;
    /// Returns the bytes of reserved address space; 0 for a measuring arena.
    std::size_t reserved() const noexcept;
    /// Returns the bytes that can be allocated before the next growth, or before the buffer is
    /// full.
    std::size_t available() const noexcept;
    /// Returns the alignment of every block, in bytes.
    std::size_t alignment() const noexcept { return granule_mask_ + 1; }
    /// Returns the arena's name, as ArenaOptions::name gave it.
    const std::string& name() const noexcept;
    /// Returns the arena's statistics.
    ArenaStatistics statistics() const noexcept;

    /// Records an object at `data`, an address within a block of this arena, in the register (see
    /// ArenaOptions::objects). A release that ends the block removes the object and its views. Any
    /// thread may call it. Throws std::logic_error if the arena keeps no register, and
    /// std::invalid_argument if the object does not lie within the bytes in use. Returns the
    /// object's number.
    ObjectId record(const void* data, ObjectDescription object);
    /// Records a view that begins `offset` bytes into the object or view `of`. Any thread may call
    /// it. Throws std::logic_error if the arena keeps no register, and std::invalid_argument if
    /// there is no such object or the view extends beyond it. Returns the view's number.
    ObjectId record_view(ObjectId of, std::size_t offset, ObjectDescription view);
    /// Allocates `object.bytes` bytes with the arena's alignment, and a header of `header_bytes`
    /// bytes for the caller's own description of the object, and records the object. Any thread may
    /// call it.
    ///
    /// The header lies outside of the arena. So in a measuring arena the objects are real and only
    /// their data is measured (GGML's `no_alloc`), and `used()` and `peak()` count data alone. A
    /// release that ends the data removes the object and frees its header; no destructor runs. An
    /// object of 0 bytes ends with a release below the position where it was made, or to 0.
    /// Throws std::logic_error if the arena keeps no register, and AllocationError or
    /// std::bad_alloc, changing nothing, if the memory is unavailable.
    AllocatedObject allocate_object(ObjectDescription object, std::size_t header_bytes);
    /// Makes a header of `header_bytes` bytes for a view that begins `offset` bytes into the object
    /// or view `of`, and records the view. Its data is that part of the object. Any thread may call
    /// it.
    ///
    /// Throws std::logic_error if the arena keeps no register, std::invalid_argument if there is no
    /// such object or the view extends beyond it, and std::bad_alloc if the memory is unavailable.
    AllocatedObject allocate_view(ObjectId of, std::size_t offset, ObjectDescription view,
                                  std::size_t header_bytes);
    /// Returns a copy of the register, in the order of recording.
    std::vector<ArenaObject> objects() const;
    /// Returns the recorded objects' counts and bytes, by kind and by element type.
    ArenaAnalysis analyze() const;

private:
    friend class detail::ArenaClaims;
    friend class detail::ArenaHandles;
    friend class detail::ArenaReleases;
    friend class detail::ArenaState;
    struct Measuring;
    Arena(std::span<std::byte> buffer, ArenaOptions options);
    explicit Arena(Measuring measuring);
    void set_up(std::byte* base) noexcept;

    static constexpr std::size_t default_alignment = 64;
    // The top holds the offset of the next block in its lower 48 bits. The upper 16 bits count how
    // often claims were cancelled.
    static constexpr unsigned offset_bits = 48;
    static constexpr std::uint64_t offset_mask = (std::uint64_t{1} << offset_bits) - 1;

    void* allocate_slow(std::size_t bytes, std::size_t alignment);
    void* settle_or_throw(std::uint64_t claim, std::size_t bytes);
    void* take_one_threads(std::size_t size) noexcept;
    std::size_t settled_top() const noexcept;

    // Every allocation reads these; they share one cache line. `end_` only grows while allocations
    // may be under way.
    alignas(64) std::byte* base_ = nullptr;
    std::size_t granule_mask_ = 0;
    // A larger request takes the slow path. In an arena of one thread with checks, every request
    // does. Atomic, because another thread may begin to record calls, which sends every request to
    // the slow path. Relaxed is enough: a call under way may miss the change.
    std::atomic<std::size_t> quick_bytes_ = 0;
    bool shared_ = true;
    std::atomic<std::size_t> end_ = 0;  // usable bytes, from base_ on
    // Every allocation writes these words. `used` is the top.
    detail::ArenaWords* words_ = nullptr;
    std::unique_ptr<detail::ArenaState> state_;
};

/// Marks an arena when it is made and releases the arena to that mark when it is destroyed. If the
/// mark is stale by then, because the arena was released below it, the scope does nothing.
class TENSORPOOL_API ArenaScope {
public:
    /// Marks `arena`, which must outlive the scope.
    explicit ArenaScope(Arena& arena) noexcept : arena_(&arena), mark_(arena.mark()) {}
    /// Releases the arena to the mark.
    ~ArenaScope();
    ArenaScope(const ArenaScope&) = delete;
    ArenaScope& operator=(const ArenaScope&) = delete;

private:
    Arena* arena_;
    Arena::Mark mark_;
};

inline void* Arena::take_one_threads(std::size_t size) noexcept {
    const std::uint64_t start = words_->used.load(std::memory_order_relaxed);
    if (size > end_.load(std::memory_order_relaxed) - start) return nullptr;
    words_->used.store(start + size, std::memory_order_relaxed);
    detail::add(words_->allocations[0], 1);
    return base_ + start;
}

inline void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
    // 0 wraps around and fails the same comparison, for `bytes` and for `alignment`.
    if (bytes - 1 >= quick_bytes_.load(std::memory_order_relaxed) ||
        alignment - 1 > granule_mask_ || !std::has_single_bit(alignment)) [[unlikely]] {
        return allocate_slow(bytes, alignment);
    }
    const std::size_t size = (bytes + granule_mask_) & ~granule_mask_;
    if (!shared_) {
        void* const block = take_one_threads(size);
        return block != nullptr ? block : allocate_slow(bytes, alignment);
    }
    // The end is read before the claim is made: a claim that is cancelled in between lies above it.
    const std::size_t end = end_.load(std::memory_order_acquire);
    // Acquire: pairs with the end of a handle that returned these bytes (see `hold`).
    const std::uint64_t claim = words_->used.fetch_add(size, std::memory_order_acquire);
    const std::size_t start = claim & offset_mask;
    if (start + size <= end) [[likely]] {
        detail::count_allocation(*words_);
        return base_ + start;
    }
    return settle_or_throw(claim, bytes);
}

}  // namespace tensorpool
