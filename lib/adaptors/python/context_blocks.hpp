#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace tensorpool::python {

/// What a thread is in while it follows a block. Its end leaves that, on the same thread.
struct Inside {
    virtual ~Inside() = default;
};

/// A `with` block of an object of the package. It belongs to a context (contextvars), and a thread
/// is in it while it runs that context. It is open until `end`, which any thread may call, in any
/// order of blocks, or until its object ends, which it does not keep alive. The functions need the
/// interpreter's lock.
class OpenBlock {
public:
    /// Makes a block inside the innermost open one of the present context, for `enter_block`.
    explicit OpenBlock(const pybind11::object& owner);
    virtual ~OpenBlock() = default;
    OpenBlock(const OpenBlock&) = delete;
    OpenBlock& operator=(const OpenBlock&) = delete;

    /// The object of the package, or None if it has ended.
    pybind11::object owner() const { return owner_(); }
    bool is_open() const { return is_open_ && !owner().is_none(); }
    void end() noexcept;
    /// Returns the innermost open block around it, or nullptr, and forgets those that ended.
    const std::shared_ptr<OpenBlock>& outer();
    /// Whether it was made on the calling thread.
    bool is_of_this_thread() const noexcept;

    /// Lets the calling thread be in the block; nullptr if it does not apply to this thread.
    virtual std::unique_ptr<Inside> follow() = 0;

private:
    pybind11::weakref owner_;
    std::shared_ptr<OpenBlock> outer_;
    std::uint64_t thread_;
    bool is_open_ = true;
};
using OpenBlockPointer = std::shared_ptr<OpenBlock>;

/// Adds the base class of blocks, which must come before their own classes.
void add_context_blocks(pybind11::module_& module);
/// Returns the innermost open block of the present context, or nullptr.
OpenBlockPointer innermost_block();
/// Makes a new block the innermost of the present context, and lets the calling thread be in it.
void enter_block(const OpenBlockPointer& block);
/// Ends a block. The calling thread is then in the open blocks of the present context.
void leave_block(OpenBlock& block);

extern constinit std::atomic<bool> any_block_was_entered;

/// While it lives, the calling thread is in the `with` blocks that are open in the present context
/// (contextvars), if it holds the interpreter's lock. Before version 3.14, the interpreter does not
/// report that a thread switches tasks, so each call of NumPy compares the context. Relaxed: the
/// thread that enters the first block sees its own store, and a thread that inherits the context
/// was started or woken after it.
class InContext {
public:
    InContext() noexcept {
        if (any_block_was_entered.load(std::memory_order_relaxed)) [[unlikely]]
            follows_ = follow();
    }
    ~InContext() {
        if (follows_) [[unlikely]]
            leave();
    }
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;

private:
    static bool follow() noexcept;
    static void leave() noexcept;

    bool follows_ = false;
};

}  // namespace tensorpool::python
