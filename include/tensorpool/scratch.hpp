#pragma once

/// @file
/// A thread's own memory for the inside of an operator. Sizes are bytes unless a name says
/// otherwise.

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/export.hpp>

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

/// Where rows are padded: row `i` begins `i * row_bytes` after `data`.
struct PaddedMatrix {
    void* data = nullptr;
    std::size_t row_bytes = 0;
};

/// Memory of one thread that is taken in scopes: what was allocated in a ScratchScope ends with it,
/// and nothing is freed alone. It begins with 512 KiB and grows by chained chunks, so that pointers
/// stay valid until their scope ends. When the outermost scope or `reset` has ended everything, the
/// chunks are joined into one that would have held it all, by steps: for a need below 64 MiB twice
/// that and at least 16 MiB; below 512 MiB 128 MiB more; above, 64 MiB more.
///
/// No function may be called from another thread than the one it belongs to, except `statistics`.
class TENSORPOOL_API Scratch {
public:
    /// A place within a scope to come back to. Valid until its scope ends or a release goes below
    /// it.
    class Mark {
    public:
        /// Of no scratch.
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

    /// The calling thread's, made at its first use and given back when the thread ends. Throws
    /// AllocationError when there is no memory for it.
    static Scratch& local();
    /// Over memory of the caller's, which must outlive it: it never grows, and belongs to the
    /// thread that uses it.
    static Scratch over(std::span<std::byte> buffer);
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    /// At least `bytes`, aligned to `alignment` and to 64; nullptr for 0. The content is undefined.
    /// Throws AllocationError (a std::bad_alloc) when it cannot be had or is more than the limit
    /// for one request (8 GiB, or TENSORPOOL_ARENA_MAX_ALLOCATION), and std::invalid_argument
    /// unless `alignment` is a power of two; the scratch is then as it was.
    void* allocate(std::size_t bytes, std::size_t alignment = 64);
    /// `rows * cols` elements, row after row without gaps, aligned to 64: for a packed operand of a
    /// matrix product. nullptr for none. Throws AllocationError when the product overflows.
    void* allocate_matrix_pack(std::size_t rows, std::size_t cols, std::size_t element_bytes,
                               std::size_t alignment = 64);
    /// The same with rows that begin at multiples of 64, and one cache line further apart where
    /// they would be a multiple of 512: of 4096 all rows would begin in the same set of the
    /// first-level cache, and walking down a column would find room for its 8 or 12 ways only; of
    /// 512 in eight of its 64 sets. A transposition of 2048 x 2048 floats is 6 times as quick by
    /// it, in tiles of 32 x 32 too 5 times, and a naive product of 1024 x 1024 more than 5 times;
    /// work that walks along rows gains nothing (perf/matrix.cpp).
    PaddedMatrix allocate_padded_matrix(std::size_t rows, std::size_t cols,
                                        std::size_t element_bytes);

    /// Ends everything that was allocated outside of any scope. Throws std::logic_error inside one.
    void reset();
    Mark mark() const noexcept;
    /// Ends what was allocated since the mark was made, in the scope in which it was made. Throws
    /// std::logic_error, changing nothing, in any other scope, for a mark of another scratch, and
    /// for a stale one: a release went below it since.
    void release_to(const Mark& mark);
    /// Makes room for `bytes` more, so that they will be allocated without growth. Throws
    /// AllocationError when they cannot be had.
    void reserve(std::size_t bytes);
    /// Gives back what holds nothing: all memory where nothing is in use and no scope is open.
    /// Returns the bytes given back.
    std::size_t trim() noexcept;

    /// Bytes handed out and not ended, padding for alignment included.
    std::size_t used() const noexcept { return used_->load(std::memory_order_relaxed); }
    /// The most that `used()` ever was.
    std::size_t peak() const noexcept;
    std::size_t capacity() const noexcept;
    /// From any thread.
    ArenaStatistics statistics() const noexcept;

private:
    friend class Context;
    friend class ScratchScope;
    friend class detail::ScratchState;
    struct Over;
    Scratch();
    explicit Scratch(Over over);

    static Scratch& make_local();
    std::size_t product(std::size_t one, std::size_t other) const;
    void* allocate_slow(std::size_t bytes, std::size_t alignment);
    void begin_operator(ScratchScope& scope, std::string_view name) noexcept;
    void end_operator(const ScratchScope& scope) noexcept;
    void end_scope_slow(const ScratchScope& scope) noexcept;
    void release_to(const Mark& mark, const char* call);
    bool is_in_scope() const noexcept;
    void raise_high() noexcept {
        const std::size_t now = used();
        if (now > high_->load(std::memory_order_relaxed))
            high_->store(now, std::memory_order_relaxed);
    }

    // Bytes in use, and how far the present chunk lets that go, counted from `base_`: where it all
    // would have begun, had it been in one piece that ends with this chunk.
    // What is atomic is written by one thread, without atomic operations, and read by others too.
    // The two words lie in the record of the scratch, where other processes may read them.
    std::atomic<std::uint64_t>* used_ = nullptr;
    std::size_t limit_ = 0;
    std::uintptr_t base_ = 0;
    // The most in use, as far as ended scopes show, since the chunks were last joined or given back
    // or since the innermost named scope began.
    std::atomic<std::uint64_t>* high_ = nullptr;
    std::size_t chunk_ = 0;
    // Atomic, for another thread may begin to record calls, which sends all to the slow path.
    std::atomic<std::size_t> quick_bytes_ = 0;
    // The innermost open scope; scopes are numbered as they begin. Atomic only so that the compiler
    // does not load both at once: a wide load waits for narrow stores just made, some 10 cycles.
    std::atomic<std::uint64_t> scope_ = 0;
    std::atomic<std::uint64_t> last_scope_ = 0;
    std::uint64_t scope() const noexcept { return scope_.load(std::memory_order_relaxed); }
    // There is more than one chunk, or the first was made inside a scope.
    bool unsettled_ = false;
    std::unique_ptr<detail::ScratchState> state_;
};

/// Ends what was allocated from the scratch inside it. Scopes nest; one that ends before a scope
/// that began inside it stops the program with a line on stderr.
///
/// A scope may carry the name of an operator: then the most that it had in use is remembered, for
/// all threads, and so much is made ready before the operator runs again (see scratch_report).
/// Finding the name costs some 12 ns.
class TENSORPOOL_API ScratchScope {
public:
    /// Of the calling thread's scratch. Throws as Scratch::local does.
    ScratchScope() : ScratchScope(Scratch::local()) {}
    explicit ScratchScope(std::string_view name) : ScratchScope(Scratch::local(), name) {}
    explicit ScratchScope(Scratch& scratch) noexcept
        : used_before_(scratch.used()),
          scratch_(&scratch),
          chunk_(scratch.chunk_),
          outer_(scratch.scope()),
          self_(scratch.last_scope_.load(std::memory_order_relaxed) + 1) {
        scratch.last_scope_.store(self_, std::memory_order_relaxed);
        scratch.scope_.store(self_, std::memory_order_relaxed);
    }
    ScratchScope(Scratch& scratch, std::string_view name) noexcept : ScratchScope(scratch) {
        scratch.begin_operator(*this, name);
    }
    ~ScratchScope() {
        Scratch& scratch = *scratch_;
        if (operator_ != nullptr || scratch.unsettled_ || scratch.scope() != self_) [[unlikely]] {
            scratch.end_scope_slow(*this);
            return;
        }
        scratch.raise_high();
        scratch.used_->store(used_before_, std::memory_order_relaxed);
        scratch.scope_.store(outer_, std::memory_order_relaxed);
    }
    ScratchScope(const ScratchScope&) = delete;
    ScratchScope& operator=(const ScratchScope&) = delete;

private:
    friend class Scratch;
    // Apart from the chunk: gcc would copy both at once, through a vector register, and each scope
    // wait for the one before it, 2 ns more (perf/arena.cpp).
    std::size_t used_before_;
    Scratch* scratch_;
    std::size_t chunk_;
    std::uint64_t outer_;
    std::uint64_t self_;
    // Below: of a scope with a name.
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
    // 0 wraps round and leaves by the same comparison, for bytes as for alignment.
    if (bytes - 1 < quick_bytes_.load(std::memory_order_relaxed) && alignment - 1 < 64 &&
        std::has_single_bit(alignment)) [[likely]] {
        const std::size_t size = (bytes + 63) & ~std::size_t{63};
        const std::size_t before = used();
        if (size <= limit_ - before) [[likely]] {
            used_->store(before + size, std::memory_order_relaxed);
            return reinterpret_cast<void*>(base_ + before);
        }
    }
    return allocate_slow(bytes, alignment);
}

}  // namespace tensorpool
