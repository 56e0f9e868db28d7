#pragma once

/// @file
/// Functions that are called around a fork, in an order that depends only on the list below.

#include <atomic>
#include <mutex>

namespace tensorpool::platform {

/// The components whose locks a fork takes, in this order. A lock may be held while locks further
/// down the list are taken, never the other way round. They are released in the reverse order.
enum class ForkStage : unsigned {
    // In a separate library. The system calls its handlers before those of the pool's library
    // because it is loaded later.
    allocator,       ///< serves malloc from a pool
    trimmer_thread,  ///< no locks: in a child, starts a thread once all locks are released
    fault_handler,   ///< no locks: in a child, starts a thread once all locks are released
    devices,         ///< no locks: a child does not use what its parent created
    stashes,         ///< no locks: parent and child must not change the file that both read
    stashed_maps,    ///< maps of stashes; nothing else is locked under their locks
    planned,  ///< planned arenas; under their locks a map grows, which a pool may serve and record
    frozen_blocks,  ///< blocks that are frozen in place; the servers of blocks call them under the
                    ///< lock of `planned`
    recorder,       ///< the recorder of calls
    arenas,         ///< arenas; under their locks vectors grow, and a pool may serve malloc
    scratches,      ///< scratches; their vectors grow under locks as well
    trimmer,        ///< the thread that releases unused memory of pools, under their locks
    pools,          ///< the pools of a process, their threads' caches and their address space
    pool_list,      ///< the list of pools, which pools enter under a lock of theirs
    statistics,     ///< what all of the components above share
    rings,  ///< rings of recorded calls: calls of all components above may be recorded under
            ///< their locks
};
inline constexpr unsigned fork_stages = 16;

struct ForkHandlers {
    void (*before)() = nullptr;
    void (*after_in_parent)() = nullptr;
    void (*after_in_child)() = nullptr;
};

/// One entry of handlers for each place of the list. A table with static storage needs no
/// constructor.
class ForkTable {
public:
    constexpr ForkTable() noexcept = default;

    /// Sets the handlers of a place. A place is set once; later calls leave it unchanged. Returns
    /// false while another thread is setting it for the first time.
    bool set(ForkStage place, const ForkHandlers& handlers) noexcept;
    /// Called around each fork on the thread that forks. Forks of other threads wait from `before`
    /// on. Handlers that are set between `before` and `after` are first called at the next fork.
    void before() noexcept;
    void after_in_parent() noexcept { after(&ForkHandlers::after_in_parent); }
    void after_in_child() noexcept { after(&ForkHandlers::after_in_child); }

private:
    enum class State : unsigned { free, being_set, set };
    struct Entry {
        std::atomic<State> state = State::free;
        ForkHandlers handlers;
        bool called = false;  // around the current fork; guarded by mutex_
    };

    void after(void (*ForkHandlers::*function)()) noexcept;

    Entry entries_[fork_stages];
    std::mutex mutex_;
};

/// Sets handlers that are called around each fork, on the thread that forks: `before` and
/// `after_in_parent` in the parent, `after_in_child` in the child. A place is set once; later calls
/// leave it unchanged. May be called on any thread, while the library is loaded or later. Returns
/// false if the system has no memory or another thread is setting the same place: the caller should
/// try again later.
[[nodiscard]] bool set_fork_handlers(ForkStage place, void (*before)(), void (*after_in_parent)(),
                                     void (*after_in_child)()) noexcept;

}  // namespace tensorpool::platform
