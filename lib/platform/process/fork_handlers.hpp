#pragma once

/// @file
/// What is called around a fork, in an order that rests on nothing but this list.

#include <atomic>
#include <mutex>

namespace tensorpool::platform {

/// Whose locks a fork takes, in this order: each may be held while those behind it are taken, never
/// those before it. What is taken last is given back first.
enum class ForkPlace : unsigned {
    // In a library of its own, which the system calls before the pool's for it is loaded after.
    allocator,   ///< that serves malloc from a pool
    devices,     ///< no locks: a child leaves alone what its parent made
    planned,     ///< arenas; under their locks a map grows, which a pool may serve and record
    recorder,    ///< of calls
    arenas,      ///< under their locks vectors grow, and a pool may serve malloc
    scratches,   ///< the same
    trimmer,     ///< the thread that gives back what pools do not need, under their locks
    pools,       ///< of a process, their threads' caches and their address space
    pool_list,   ///< pools enter it under a lock of theirs
    statistics,  ///< what all of the others share
    rings,       ///< of recorded calls: any of the others may be recorded under its locks
};
inline constexpr unsigned fork_places = 11;

struct ForkHandlers {
    void (*before)() = nullptr;
    void (*after_in_parent)() = nullptr;
    void (*after_in_child)() = nullptr;
};

/// One set of handlers a place. Static storage needs no constructor run.
class ForkTable {
public:
    constexpr ForkTable() noexcept = default;

    /// A place is taken once: asked for again, it stays as it is. False while another thread takes
    /// it for the first time.
    bool set(ForkPlace place, const ForkHandlers& handlers) noexcept;
    /// Around each fork, on the thread that forks; those of other threads wait from `before` on.
    /// Handlers that are set in between are not called before the next fork.
    void before() noexcept;
    void after_in_parent() noexcept { after(&ForkHandlers::after_in_parent); }
    void after_in_child() noexcept { after(&ForkHandlers::after_in_child); }

private:
    enum class State : unsigned { free, being_set, set };
    struct Place {
        std::atomic<State> state = State::free;
        ForkHandlers handlers;
        bool called = false;  // around the fork under way; under mutex_
    };

    void after(void (*ForkHandlers::*function)()) noexcept;

    Place places_[fork_places];
    std::mutex mutex_;
};

/// Calls these around a fork: `before` and `after_in_parent` in the process that forks,
/// `after_in_child` in the new one, each on the thread that forks. As ForkTable::set. While the
/// library is loaded, or any time later, on any thread. Does nothing where there is no fork. False
/// where the system has no memory for it too: ask again then.
[[nodiscard]] bool set_fork_handlers(ForkPlace place, void (*before)(), void (*after_in_parent)(),
                                     void (*after_in_child)()) noexcept;

}  // namespace tensorpool::platform
