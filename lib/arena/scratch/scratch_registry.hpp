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

/// The scratches of all threads, and the lock under which any scratch changes its chunks, so that
/// the child of a fork finds them whole and gives back those of threads that are not in it (not the
/// other records of such a thread, which may have been amid anything).
/// Thread-safe; the only one is the process's.
class ScratchRegistry : public base::Registry<detail::ScratchState> {
public:
    /// The calling thread's, to be given back when it ends.
    void enter(detail::ScratchState& scratch) noexcept;

    /// From now on every allocation from every thread's scratch takes the slow path.
    void hide_quick_paths() noexcept;
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
