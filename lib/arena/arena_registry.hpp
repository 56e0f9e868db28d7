#pragma once

#include <cstddef>

#include "base/registry.hpp"

namespace tensorpool::detail {
class ArenaState;
}

namespace tensorpool::arena {

/// All living arenas, so that a fork finds none of them in the middle of a growth. There is one
/// registry in the process.
class ArenaRegistry : public base::Registry<detail::ArenaState> {
public:
    /// Sets the largest request, in bytes, that the inline path of the arena takes.
    void set_quick_bytes(detail::ArenaState& arena, std::size_t bytes) noexcept;
    /// Makes every allocation from every arena take the slow path from now on.
    void hide_quick_paths() noexcept;
    /// Lets the inline paths serve allocations again.
    void show_quick_paths() noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    bool hidden_ = false;
};

ArenaRegistry& arena_registry() noexcept;

}  // namespace tensorpool::arena
