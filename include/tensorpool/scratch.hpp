#pragma once

/// @file
/// Scratch: a thread's own memory for the inside of an operator. Sizes are bytes unless a name says
/// otherwise.

#include <span>
#include <string_view>
#include <vector>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/detail/arena_words.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool {

class Scratch;
class Context;
class ScratchScope;

namespace detail {
class ScratchState;
struct ScratchOperator;
inline namespace abi_2 {
/// The calling thread's scratch; null before its first use.
extern TENSORPOOL_API constinit thread_local Scratch* local_scratch TENSORPOOL_INITIAL_EXEC;
}  // namespace abi_2
}  // namespace detail

/// A matrix with padded rows: row `i` begins `i * row_bytes` bytes after `data`.
struct PaddedMatrix {
    /// The address of the first row; nullptr if there are no elements.
    void* data = nullptr;
    /// The distance from the beginning of a row to the next, in bytes.
    std::size_t row_bytes = 0;
};

/// Memory of one thread that is allocated in scopes. A ScratchScope releases everything that was
/// allocated in it; blocks are not freed one by one.
///
/// A scratch begins with 512 KiB and grows by further chunks, so pointers stay valid until their
/// scope ends. When the outermost scope or `reset` has released everything, the chunks are replaced
/// by one that would have held it all. Its size grows in steps: for a need below 64 MiB it is twice
/// the need and at least 16 MiB; below 512 MiB, 128 MiB more than the need; above, 64 MiB more.
///
/// With TENSORPOOL_CHECKS=hardened, each block has 8 bytes more, which are checked at its release,
/// and released memory is filled with zeros, which are checked when it is allocated again.
///
/// Only the thread that a scratch belongs to may call its functions, except `statistics`.
class TENSORPOOL_API Scratch {
public:
    /// A position within a scope, to which the scratch can be released. It is valid until its scope
    /// ends or a release goes below it.
    class Mark {
    public:
        /// Makes a mark of no scratch.
        constexpr Mark() noexcept = default;

    private:
        friend class Scratch;
        friend class detail::ScratchState;
        std::uint64_t scratch_ = 0;
        std::uint64_t scope_ = 0;
        std::uint64_t releases_ = 0;
        std::size_t chunk_ = 0;
        std::size_t offset_ = 0;
    };

    /// Returns the calling thread's scratch. It is made at its first use and given back when the
    /// thread ends. Throws AllocationError if there is no memory for it.
    static Scratch& local();
    /// Makes a scratch over the caller's memory, which must outlive it. It never grows, and it
    /// belongs to the thread that uses it.
    static Scratch over(std::span<std::byte> buffer);
    /// Gives all memory of its own back.
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    /// Allocates at least `bytes` bytes, aligned to `alignment` and to 64. The content is
    /// undefined. Returns nullptr for 0.
    ///
    /// Throws AllocationError (a std::bad_alloc) if the memory is unavailable or `bytes` exceeds
    /// the limit for one request (8 GiB, or TENSORPOOL_ARENA_MAX_ALLOCATION), and
    /// std::invalid_argument unless `alignment` is a power of two. The scratch is then unchanged.
    void* allocate(std::size_t bytes, std::size_t alignment = 64);
    /// Allocates `rows * cols` elements of `element_bytes` bytes, row after row without gaps,
    /// aligned to `alignment` and to 64, for a packed operand of a matrix product. Returns nullptr
    /// if there are none. Throws AllocationError if the product overflows or the memory is
    /// unavailable.
    void* allocate_matrix_pack(std::size_t rows, std::size_t cols, std::size_t element_bytes,
                               std::size_t alignment = 64);
    /// Allocates `rows * cols` elements of `element_bytes` bytes whose rows begin at multiples of
    /// 64 bytes. Throws AllocationError if the product overflows or the memory is unavailable.
    ///
    /// If rows would be a multiple of 512 bytes apart, they are placed one cache line further
    /// apart. At a multiple of 4096 bytes all rows would begin in the same set of the first-level
    /// cache, so walking down a column would use only its 8 or 12 ways; at a multiple of 512 they
    /// would begin in eight of its 64 sets. The padding makes a transposition of 2048 x 2048 floats
    /// 6 times as fast (5 times in tiles of 32 x 32), and a naive product of 1024 x 1024 more than
    /// 5 times. Work that walks along rows gains nothing (perf/matrix.cpp).
    PaddedMatrix allocate_padded_matrix(std::size_t rows, std::size_t cols,
                                        std::size_t element_bytes);

    /// Allocates a block for a handle: PooledAllocation(scratch, bytes) calls it. Returns none for
    /// 0. Throws what `allocate` throws; the scratch is then unchanged.
    ///
    /// The end of the handle returns the block, or, while memory above the block or a scope that
    /// began after it is in use, leaves it to the end of a handle or of a scope with which that is
    /// gone. Handles may end in any order; a loop that assigns a handle new blocks of the scratch
    /// takes more memory in each round, until it ends one that lies on top. A handle must end on
    /// this thread, before the ScratchScope in which it was made, and before its memory is
    /// released. Anything else stops the program with a line on stderr.
    HeldBlock hold(std::size_t bytes, std::size_t alignment = 64);
    /// A release may end a block before its handle: see ReleasingSource.
    static constexpr bool releases_blocks = true;

    /// Releases everything that was allocated outside of any scope. Throws std::logic_error inside
    /// a scope.
    void reset();
    /// Returns a mark of the present position.
    Mark mark() const noexcept;
    /// Releases everything that was allocated since the mark was made, in the scope in which it was
    /// made. Throws std::logic_error, changing nothing, in any other scope, for a mark of another
    /// scratch, and for a stale mark: one below which the scratch was released since.
    void release_to(const Mark& mark);
    /// Makes room for `bytes` more bytes, so that they can be allocated without growth. Throws
    /// AllocationError if they are unavailable.
    void reserve(std::size_t bytes);
    /// Gives unused memory back: the chunks without blocks, or all memory if nothing is in use and
    /// no scope is open. Returns the number of bytes given back.
    std::size_t trim() noexcept;

    /// Returns the bytes allocated and not released, including padding for alignment.
    std::size_t used() const noexcept { return words_->used.load(std::memory_order_relaxed); }
    /// Returns the highest value that `used()` ever had, in bytes.
    std::size_t peak() const noexcept;
    /// Returns the committed bytes.
    std::size_t capacity() const noexcept;
    /// Returns the scratch's statistics. Any thread may call it.
    ArenaStatistics statistics() const noexcept;

private:
    friend class Context;
    friend class ScratchScope;
    friend class detail::ScratchState;
    Scratch();
    explicit Scratch(std::span<std::byte> buffer);

    static Scratch& make_local();
    std::size_t product(std::size_t one, std::size_t other) const;
    void* allocate_slow(std::size_t bytes, std::size_t alignment);
    void begin_operator(ScratchScope& scope, std::string_view name) noexcept;
    void end_operator(const ScratchScope& scope) noexcept;
    void end_scope_slow(const ScratchScope& scope) noexcept;
    void release_to(const Mark& mark, const char* call);
    bool is_in_scope() const noexcept;
    bool contains(const void* p) const noexcept;
    void raise_high() noexcept {
        const std::size_t now = used();
        if (now > words_->high.load(std::memory_order_relaxed))
            words_->high.store(now, std::memory_order_relaxed);
    }

    // The bytes in use, and the value up to which they may grow in the present chunk, counted from
    // `base_`: where everything would have begun if it lay in one piece that ends with this chunk.
    // Atomic members are written by one thread, without atomic operations, and read by others too.
    // `words_->high` holds the most bytes in use, as far as ended scopes show, since the chunks
    // were last joined or given back or since the innermost named scope began.
    detail::ArenaWords* words_ = nullptr;
    std::size_t limit_ = 0;
    std::uintptr_t base_ = 0;
    std::size_t chunk_ = 0;
    // Atomic, because another thread may begin to record calls, which sends every request to the
    // slow path.
    std::atomic<std::size_t> quick_bytes_ = 0;
    // The innermost open scope; scopes are numbered as they begin. Atomic only so that the compiler
    // does not load both words at once: a wide load waits for narrow stores just made, some 10
    // cycles.
    std::atomic<std::uint64_t> scope_ = 0;
    std::atomic<std::uint64_t> last_scope_ = 0;
    std::uint64_t scope() const noexcept { return scope_.load(std::memory_order_relaxed); }
    // Why the end of a scope is a call; 0 for no reason.
    static constexpr std::uint8_t unsettled = 1;     // several chunks, or the first made in a scope
    static constexpr std::uint8_t with_handles = 2;  // made in a scope, or ended and waiting
    void set_slow_end(std::uint8_t why, bool set) noexcept {
        slow_end_ = static_cast<std::uint8_t>(set ? slow_end_ | why : slow_end_ & ~why);
    }
    std::uint8_t slow_end_ = 0;
    std::unique_ptr<detail::ScratchState> state_;
};

/// Releases the scratch that was allocated inside it. Scopes nest. A scope that ends before a scope
/// that began inside it stops the program with a line on stderr.
///
/// A scope may carry the name of an operator. The most bytes that it had in use are then
/// remembered, for all threads, and as much is made ready before the operator runs again (see
/// scratch_report). Finding the name costs some 12 ns.
class TENSORPOOL_API ScratchScope {
public:
    /// Begins a scope of the calling thread's scratch. Throws AllocationError if there is no memory
    /// for the scratch.
    ScratchScope() : ScratchScope(Scratch::local()) {}
    /// Begins a scope of the calling thread's scratch for the operator with this name. Throws
    /// AllocationError if there is no memory for the scratch.
    explicit ScratchScope(std::string_view name) : ScratchScope(Scratch::local(), name) {}
    /// Begins a scope of this scratch.
    explicit ScratchScope(Scratch& scratch) noexcept
        : used_before_(scratch.used()),
          scratch_(&scratch),
          chunk_(scratch.chunk_),
          outer_(scratch.scope()),
          self_(scratch.last_scope_.load(std::memory_order_relaxed) + 1) {
        scratch.last_scope_.store(self_, std::memory_order_relaxed);
        scratch.scope_.store(self_, std::memory_order_relaxed);
    }
    /// Begins a scope of this scratch for the operator with this name.
    ScratchScope(Scratch& scratch, std::string_view name) noexcept : ScratchScope(scratch) {
        scratch.begin_operator(*this, name);
    }
    /// Releases what was allocated since the scope began.
    ~ScratchScope() {
        Scratch& scratch = *scratch_;
        if (operator_ != nullptr || scratch.slow_end_ != 0 || scratch.scope() != self_)
            [[unlikely]] {
            scratch.end_scope_slow(*this);
            return;
        }
        scratch.raise_high();
        scratch.words_->used.store(used_before_, std::memory_order_relaxed);
        detail::add(scratch.words_->releases, 1);
        scratch.scope_.store(outer_, std::memory_order_relaxed);
    }
    ScratchScope(const ScratchScope&) = delete;
    ScratchScope& operator=(const ScratchScope&) = delete;

private:
    friend class Scratch;
    // Apart from `chunk_`: gcc would copy both at once through a vector register, and each scope
    // would wait for the one before it, 2 ns more (perf/arena.cpp).
    std::size_t used_before_;
    Scratch* scratch_;
    std::size_t chunk_;
    std::uint64_t outer_;
    std::uint64_t self_;
    // The members below belong to a scope with a name.
    detail::ScratchOperator* operator_ = nullptr;
    detail::ScratchOperator* outer_operator_;
    std::size_t high_before_;
    std::size_t slack_before_;
};

inline Scratch& Scratch::local() {
    Scratch* const scratch = detail::local_scratch;
    return scratch != nullptr ? *scratch : make_local();
}

inline void* Scratch::allocate(std::size_t bytes, std::size_t alignment) {
    // 0 wraps around and fails the same comparison, for `bytes` and for `alignment`.
    if (bytes - 1 < quick_bytes_.load(std::memory_order_relaxed) && alignment - 1 < 64 &&
        std::has_single_bit(alignment)) [[likely]] {
        const std::size_t size = (bytes + 63) & ~std::size_t{63};
        const std::size_t before = used();
        if (size <= limit_ - before) [[likely]] {
            words_->used.store(before + size, std::memory_order_relaxed);
            detail::add(words_->allocations[0], 1);
            return reinterpret_cast<void*>(base_ + before);
        }
    }
    return allocate_slow(bytes, alignment);
}

}  // namespace tensorpool
