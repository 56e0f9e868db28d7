#pragma once

#include "base/registry.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
class Scratch;
namespace detail {
class ScratchState;
}
}  // namespace tensorpool

namespace tensorpool::arena {

/// The scratches of all threads, and the lock under which each scratch changes its chunks. The lock
/// lets the child of a fork find the chunks consistent and give back those of threads that it does
/// not have. (Other records of such a thread are left alone: the thread may have been in the middle
/// of changing them.) Thread-safe. There is one registry in the process.
class ScratchRegistry : public base::Registry<detail::ScratchState> {
public:
    /// Enters the scratch of the calling thread, which is given back when the thread ends.
    void enter(detail::ScratchState& scratch) noexcept;

    /// Makes every allocation from every scratch take the slow path from now on.
    void hide_quick_paths() noexcept;
    /// Lets the inline paths serve allocations again.
    void show_quick_paths() noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    platform::ExitHandler exit_handler() noexcept;

    bool hidden_ = false;
};

ScratchRegistry& scratch_registry() noexcept;

}  // namespace tensorpool::arena
