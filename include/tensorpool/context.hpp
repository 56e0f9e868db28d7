#pragma once

/// @file
/// Arena and scratch under one roof, for a graph of operators. Sizes are bytes unless a name says
/// otherwise.

#include <cstddef>
#include <memory>
#include <span>

#include <tensorpool/arena.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/scratch.hpp>

namespace tensorpool {

/// Memory for phases of work: `alloc` gives what lives until a release, from any thread;
/// `scratch_alloc` what lives inside an operator, of the calling thread. Both are aligned alike.
///
///     Context context;
///     const std::size_t before = context.mark();
///     auto* activations = static_cast<float*>(context.alloc(bytes));
///     {
///         ScratchScope scope(context.scratch(), "matmul");
///         void* packed = context.scratch_alloc_matrix_pack(rows, cols, sizeof(float));
///     }
///     context.release_to(before);
///
/// The threads of each function are those of the same function of Arena and Scratch.
class TENSORPOOL_API Context {
public:
    /// An arena with the options that the environment gives (see ArenaOptions).
    Context();
    /// The arena begins with `arena_size`; blocks are aligned to `align`, a power of two. Throws
    /// std::invalid_argument for another alignment, and AllocationError when there is no memory.
    explicit Context(std::size_t arena_size, std::size_t align = 64);
    explicit Context(ArenaOptions options);
    /// The arena lies in memory of the caller's, which must outlive the context: it never grows.
    /// Contexts may take turns over the same buffer: only one of them at a time may be in use.
    explicit Context(std::span<std::byte> arena_buffer, std::size_t align = 64);
    /// Its `alloc` gives addresses that must not be touched, and `peak()` then tells what
    /// `reserve_arena` needs (see Arena::measuring). Its scratch is real.
    static Context measuring(std::size_t align = 64);
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    /// At least `bytes` from the arena; nullptr for 0. Throws AllocationError (a std::bad_alloc)
    /// when it cannot be had or is more than the limit for one request, 8 GiB by default; the arena
    /// is then as it was.
    void* alloc(std::size_t bytes) { return arena_.allocate(bytes, alignment_); }

    /// At least `bytes` of scratch, until its ScratchScope ends or, outside of any, `scratch_reset`
    /// is called; nullptr for 0. Throws as `alloc` does.
    void* scratch_alloc(std::size_t bytes) { return scratch().allocate(bytes, alignment_); }
    /// See Scratch::allocate_matrix_pack.
    void* scratch_alloc_matrix_pack(std::size_t rows, std::size_t cols, std::size_t elem_size);
    /// Ends all scratch of this thread. Throws std::logic_error inside an open ScratchScope.
    void scratch_reset() { scratch().reset(); }

    /// The arena's `used()`.
    std::size_t mark() const { return arena_.mark().offset(); }
    /// Ends what the arena gave since. Throws std::invalid_argument, changing nothing, when the
    /// mark lies ahead of what is in use or within a block; no other mark can be told from a good
    /// one, as Arena::Mark can.
    void release_to(std::size_t mark) { arena_.release_to(mark); }
    /// Ends all that the arena gave; scratch stays.
    void reset() { arena_.reset(); }
    /// See Arena::reserve and Scratch::reserve.
    void reserve_arena(std::size_t bytes) { arena_.reserve(bytes); }
    void reserve_scratch(std::size_t bytes) { scratch().reserve(bytes); }

    /// Remembers what this thread's scratch has in use now, in place of what was remembered before.
    void save_scratch();
    /// Ends what the scratch gave since `save_scratch`, so that a graph can be computed again and
    /// again over the same scratch. What is remembered stays. Throws std::logic_error, changing
    /// nothing, when nothing is remembered, on another thread, or in another ScratchScope.
    void restore_scratch();
    /// From now on `scratch_alloc` of this context takes from a buffer of the caller's, which must
    /// outlive the context and serves one thread; it throws when that is full. Scopes of it are
    /// those made with `scratch()`, as above: a ScratchScope without it is of the thread's own.
    /// Contexts may take turns over one buffer. An empty one: the threads' own scratch again.
    /// Throws std::logic_error while the present buffer has something in use or a ScratchScope is
    /// open on it.
    void use_scratch(std::span<std::byte> buffer);

    std::size_t used() const { return arena_.used(); }
    std::size_t capacity() const { return arena_.capacity(); }
    /// The most that `used()` ever was.
    std::size_t peak() const { return arena_.peak(); }
    /// Of the calling thread, all contexts together, unless `use_scratch` gave a buffer.
    std::size_t scratch_used() const { return scratch().used(); }
    std::size_t scratch_capacity() const { return scratch().capacity(); }
    std::size_t scratch_peak() const { return scratch().peak(); }
    std::size_t alignment() const noexcept { return alignment_; }

    Arena& arena() noexcept { return arena_; }
    const Arena& arena() const noexcept { return arena_; }
    /// The scratch that `scratch_alloc` takes from on this thread.
    Scratch& scratch() const { return buffer_ != nullptr ? *buffer_ : Scratch::local(); }

private:
    struct Measuring {
        std::size_t align;
    };
    explicit Context(Measuring measuring);

    Arena arena_;
    std::size_t alignment_;
    std::unique_ptr<Scratch> buffer_;
    Scratch::Mark saved_;
};

}  // namespace tensorpool
