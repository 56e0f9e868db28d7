#pragma once

#include <cstddef>

#include "base/registry.hpp"

namespace tensorpool::detail {
class ArenaState;
}

namespace tensorpool::arena {

/// All living arenas, so that a fork finds none of them in the middle of a growth. The only one is
/// the process's.
class ArenaRegistry : public base::Registry<detail::ArenaState> {
public:
    /// What the arena's inline path takes: requests of so many bytes at most.
    void set_quick_bytes(detail::ArenaState& arena, std::size_t bytes) noexcept;
    /// From now on every allocation from every arena takes the slow path.
    void hide_quick_paths() noexcept;
    void show_quick_paths() noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    bool hidden_ = false;
};

ArenaRegistry& arena_registry() noexcept;

}  // namespace tensorpool::arena
