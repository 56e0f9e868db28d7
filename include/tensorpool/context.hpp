#pragma once

/// @file
/// A pool, an arena and a scratch behind one interface, for graphs of operators. Sizes are bytes
/// unless a name says otherwise.

#include <tensorpool/arena.hpp>
#include <tensorpool/context_options.hpp>
#include <tensorpool/context_statistics.hpp>
#include <tensorpool/scratch.hpp>

namespace tensorpool {

/// Provides memory for the phases of a computation.
///
/// - `allocate` takes small blocks (up to 64 KiB) from a pool and larger ones from the context's
///   arena. The caller frees the small ones (`deallocate`, or a PooledAllocation); a release of the
///   arena ends the large ones.
/// - `alloc` returns memory of the arena, which lives until a release.
/// - `scratch_alloc` returns memory of the thread's scratch, which lives inside an operator.
///
/// Any thread may call the first two. All blocks have the same alignment. `mark`, `release_to` and
/// `used` concern the arena alone.
///
///    Context context;
///    const std::size_t before = context.mark();
///    auto* activations = static_cast<float*>(context.alloc(bytes));
///    {
///        ScratchScope scope(context.scratch(), "matmul");
///        void* packed = context.scratch_alloc_matrix_pack(rows, cols, sizeof(float));
///    }
///    context.release_to(before);
///
/// Each function may be called on the threads that may call the same function of Arena or Scratch.
class TENSORPOOL_API Context {
public:
    /// Makes a context whose arena has the default options, which the environment may set (see
    /// ArenaOptions). Throws AllocationError if there is no memory.
    Context();
    /// Makes a context whose arena begins with `arena_size` bytes and whose blocks are aligned to
    /// `align`, a power of two. Throws std::invalid_argument for any other alignment, and
    /// AllocationError if there is no memory.
    explicit Context(std::size_t arena_size, std::size_t align = 64);
    /// Makes a context whose arena has these options. Throws std::invalid_argument for invalid
    /// options, and AllocationError if there is no memory.
    explicit Context(ArenaOptions options);
    /// Makes a context with these options. Throws std::invalid_argument for invalid options, and
    /// AllocationError if there is no memory.
    explicit Context(ContextOptions options);
    /// Makes a context whose arena lies in the caller's memory. The arena never grows, and the
    /// buffer must outlive the context. Several contexts may share a buffer if only one at a time
    /// is in use. Throws std::invalid_argument unless `align` is a power of two.
    explicit Context(std::span<std::byte> arena_buffer, std::size_t align = 64);
    /// Makes a context that measures how much memory its arena needs.
    ///
    /// `alloc` returns addresses that must not be touched, and `peak()` is then the argument that
    /// `reserve_arena` needs (see Arena::measuring). The scratch is real.
    static Context measuring(std::size_t align = 64);
    /// Makes a context that measures how much memory its arena needs, with these options.
    ///
    /// `alloc` returns addresses that must not be touched. With `options.objects`, the objects that
    /// `arena().allocate_object` makes have real headers, and only their data is measured. The
    /// scratch is real. Throws std::invalid_argument for invalid options.
    static Context measuring(ArenaOptions options);
    /// Gives the arena's memory back, blocks in use included.
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    /// Allocates at least `bytes` bytes; returns nullptr for 0. Up to
    /// `ContextOptions::small_bytes`, the block comes from the pool, and the caller frees it
    /// with `deallocate`. A larger one comes from the arena and lives until a release, whatever
    /// `deallocate` is called for: a loop that allocates such blocks grows the arena, unless it is
    /// in an ArenaScope or uses handles. While a ScratchAllocationScope of this context is open on
    /// the calling thread, all blocks come from the scratch instead. Throws AllocationError (a
    /// std::bad_alloc) if the memory is unavailable; nothing has changed then.
    void* allocate(std::size_t bytes);
    /// Frees a block that `allocate(bytes)` of this context took from the pool; any thread may call
    /// it. Does nothing for nullptr, for a block of the arena, and for a block of a scratch, which
    /// may be passed only on the thread and within the ScratchAllocationScope in which it was
    /// allocated. `p` must not come from anywhere else.
    void deallocate(void* p, std::size_t bytes) noexcept;

    /// Allocates at least `bytes` bytes from the arena; returns nullptr for 0. Throws
    /// AllocationError (a std::bad_alloc) if the memory is unavailable or `bytes` exceeds the limit
    /// for one request, 8 GiB by default. The arena is then unchanged.
    void* alloc(std::size_t bytes) { return arena_.allocate(bytes, alignment_); }

    /// Allocates a block for a handle from where `allocate` would: PooledAllocation(context, bytes)
    /// calls it. The end of the handle frees a block of the pool; for the others see Arena::hold
    /// and Scratch::hold. Returns none for 0. Throws what `allocate` throws, and
    /// std::invalid_argument unless `alignment` is a power of two.
    HeldBlock hold(std::size_t bytes, std::size_t alignment = 64);
    /// A release may end a block before its handle: see ReleasingSource.
    static constexpr bool releases_blocks = true;

    /// Allocates at least `bytes` bytes of scratch; returns nullptr for 0. The memory lives until
    /// its ScratchScope ends or, outside of any scope, until `scratch_reset`. Throws
    /// AllocationError (a std::bad_alloc) if the memory is unavailable or `bytes` exceeds the limit
    /// for one request, 8 GiB by default.
    void* scratch_alloc(std::size_t bytes) { return scratch().allocate(bytes, alignment_); }
    /// Allocates scratch for `rows * cols` elements of `elem_size` bytes, row after row without
    /// gaps. Returns nullptr if there are none. Throws AllocationError if the product overflows or
    /// the memory is unavailable.
    void* scratch_alloc_matrix_pack(std::size_t rows, std::size_t cols, std::size_t elem_size);
    /// Releases all scratch of the calling thread. Throws std::logic_error inside an open
    /// ScratchScope.
    void scratch_reset() { scratch().reset(); }

    /// Returns the arena's present position, which equals `used()`, for `release_to`.
    std::size_t mark() const { return arena_.mark().offset(); }
    /// Releases what the arena allocated since `mark()` returned this value. Throws
    /// std::invalid_argument, changing nothing, if the mark is ahead of what is in use or not a
    /// multiple of the alignment. Unlike an Arena::Mark, other stale marks cannot be detected.
    void release_to(std::size_t mark) { arena_.release_to(mark); }
    /// Releases everything that the arena allocated. Scratch is unaffected.
    void reset() { arena_.reset(); }
    /// Commits and touches memory until the arena's capacity is at least `bytes`. Throws
    /// AllocationError, changing nothing, if that is unavailable.
    void reserve_arena(std::size_t bytes) { arena_.reserve(bytes); }
    /// Makes room for `bytes` more bytes in the calling thread's scratch, so that they can be
    /// allocated without growth. Throws AllocationError if they are unavailable.
    void reserve_scratch(std::size_t bytes) { scratch().reserve(bytes); }

    /// Remembers the present position of this thread's scratch, in place of a position remembered
    /// before.
    void save_scratch();
    /// Releases what the scratch allocated since `save_scratch`, so that a graph can be computed
    /// repeatedly over the same scratch. The remembered position stays. Throws std::logic_error,
    /// changing nothing, if no position is remembered, on another thread, and in another
    /// ScratchScope.
    void restore_scratch();
    /// Makes `scratch_alloc` of this context take memory from the caller's buffer from now on. An
    /// empty buffer restores each thread's own scratch.
    ///
    /// The buffer must outlive the context and serves one thread at a time; `scratch_alloc` throws
    /// if it is full. Pass `scratch()` to a ScratchScope, or the scope belongs to the thread's own
    /// scratch. Several contexts may share a buffer if only one at a time is in use. Throws
    /// std::logic_error, changing nothing, while the present buffer has bytes in use or an open
    /// ScratchScope, and while a ScratchAllocationScope of this context is open on the calling
    /// thread.
    void use_scratch(std::span<std::byte> buffer);

    /// Returns the statistics of the pool, the arena and the calling thread's scratch.
    ContextStatistics statistics() const;
    /// Returns the pool that `allocate` takes small blocks from.
    MemoryPool& pool() const noexcept { return *pool_; }
    /// Returns the bytes that the arena has in use, including padding for alignment.
    std::size_t used() const { return arena_.used(); }
    /// Returns the bytes that the arena has committed.
    std::size_t capacity() const { return arena_.capacity(); }
    /// Returns the highest value that `used()` ever had, in bytes.
    std::size_t peak() const { return arena_.peak(); }
    /// Returns the bytes of scratch that the calling thread has in use: of all contexts together,
    /// unless `use_scratch` set a buffer.
    std::size_t scratch_used() const { return scratch().used(); }
    /// Returns the bytes that the calling thread's scratch has committed, or the size of the buffer
    /// that `use_scratch` set.
    std::size_t scratch_capacity() const { return scratch().capacity(); }
    /// Returns the highest value that `scratch_used()` ever had for this scratch, in bytes.
    std::size_t scratch_peak() const { return scratch().peak(); }
    /// Returns the alignment of all blocks, in bytes.
    std::size_t alignment() const noexcept { return alignment_; }

    /// Returns the context's arena.
    Arena& arena() noexcept { return arena_; }
    /// Returns the context's arena.
    const Arena& arena() const noexcept { return arena_; }
    /// Returns the scratch that `scratch_alloc` uses on the calling thread.
    Scratch& scratch() const { return buffer_ != nullptr ? *buffer_ : Scratch::local(); }

private:
    struct Measuring {
        ArenaOptions options;
    };
    explicit Context(Measuring measuring);
    bool is_small(std::size_t bytes) const noexcept { return bytes <= small_bytes_; }

    Arena arena_;
    std::size_t alignment_;
    MemoryPool* pool_;
    std::size_t small_bytes_ = ContextOptions().small_bytes;
    std::unique_ptr<Scratch> buffer_;
    Scratch::Mark saved_;
};

/// While it is open, `Context::allocate` of one context, on the thread that opened it, takes all
/// blocks from the scratch: the temporary tensors of an operator, without a change to the code that
/// makes them. Its end releases them. Handles of such blocks must end before it. Scopes end
/// in reverse order, on the thread that opened them.
class TENSORPOOL_API ScratchAllocationScope {
public:
    /// Opens a scope for the operator with this name, as ScratchScope does. Throws AllocationError
    /// if there is no memory for the scratch.
    explicit ScratchAllocationScope(Context& context, std::string_view name = "allocations");
    /// Releases what the context allocated since the scope began.
    ~ScratchAllocationScope();
    ScratchAllocationScope(const ScratchAllocationScope&) = delete;
    ScratchAllocationScope& operator=(const ScratchAllocationScope&) = delete;

private:
    friend class Context;
    static bool is_open_for(const Context& context) noexcept;

    const Context& context_;
    const ScratchAllocationScope* outer_;
    ScratchScope scope_;
};

}  // namespace tensorpool
