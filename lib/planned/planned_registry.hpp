#pragma once

#include <mutex>

namespace tensorpool::detail {
class PlannedState;
}

namespace tensorpool::planned {

/// All living planned arenas, so that a fork finds the lock of none of them taken. Its lock comes
/// before theirs. Thread-safe; the only one is the process's.
class PlannedRegistry {
public:
    constexpr PlannedRegistry() noexcept = default;

    void enter(detail::PlannedState& arena) noexcept;
    void leave(detail::PlannedState& arena) noexcept;

    void before_fork() noexcept;
    void after_fork_in_parent() noexcept;
    void after_fork_in_child() noexcept;

private:
    std::mutex mutex_;
    detail::PlannedState* arenas_ = nullptr;
};

PlannedRegistry& planned_registry() noexcept;

}  // namespace tensorpool::planned
