#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace tensorpool::python {

/// Ends what a thread is in while it follows a block. Destroyed on that thread.
struct Inside {
    virtual ~Inside() = default;
};

/// A `with` block of an object of the package. It belongs to a context (contextvars), and a thread
/// is in it while it runs that context. It must not keep the object alive, with which it ends. It
/// is open until `end`, which any thread may call, in any order of blocks. The functions need the
/// interpreter's lock.
class OpenBlock {
public:
    /// Begins in the innermost open block of the present context. `enter` follows.
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
    std::uint64_t id() const noexcept { return id_; }
    bool is_of_this_thread() const noexcept;

    /// Lets the calling thread be in the block; nullptr if it does not apply to this thread.
    virtual std::unique_ptr<Inside> follow() = 0;

private:
    static inline constinit std::atomic<std::uint64_t> last_id = 0;

    pybind11::weakref owner_;
    std::shared_ptr<OpenBlock> outer_;
    std::uint64_t id_ = ++last_id;
    std::uint64_t thread_;
    bool is_open_ = true;
};
using OpenBlockPointer = std::shared_ptr<OpenBlock>;

/// Adds the classes of blocks' base, before those of blocks.
void add_context_blocks(pybind11::module_& module);
/// Returns the innermost open block of the present context, or nullptr.
OpenBlockPointer innermost_block();
/// Makes a new block the innermost of the present context.
void enter_block(const OpenBlockPointer& block);
/// Ends a block.
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
