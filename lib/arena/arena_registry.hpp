#pragma once

#include <mutex>

namespace tensorpool::detail {
class ArenaState;
}

namespace tensorpool::arena {

/// All living arenas, so that a fork finds none of them in the middle of a growth. Its lock comes
/// before theirs. Thread-safe; the only one is the process's.
class ArenaRegistry {
public:
    constexpr ArenaRegistry() noexcept = default;

    void enter(detail::ArenaState& arena) noexcept;
    void leave(detail::ArenaState& arena) noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    std::mutex mutex_;
    detail::ArenaState* arenas_ = nullptr;
};

ArenaRegistry& arena_registry() noexcept;

}  // namespace tensorpool::arena
