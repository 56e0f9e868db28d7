#pragma once

#include "kinds/kind.hpp"

namespace tensorpool::kinds {

/// Serves the larger requests that some threads make of the global pool, or only notes the frees of
/// some blocks. Upper layers implement it. A thread is *served* while a `ServingThread` exists on
/// it.
class BlockServer {
public:
    /// Allocates a block, or lets the global pool allocate it. Returns nullptr if neither can;
    /// `path.refusal` then holds the reason. Called on served threads. During the call, the thread
    /// is not served.
    virtual void* serve(const Request& request, SlowPath& path) noexcept = 0;
    /// Notes the free of a block of the pool that this server had marked with `note_free_of`.
    /// Returns false if it was another server. Called by any thread, under the lock of
    /// `block_servers`, before the block is freed.
    virtual bool note_free(void* p) noexcept = 0;

    /// Returns the memory of a plan that no iteration uses and of which no block is in use, if
    /// requests since its last iteration lacked a good part of it. Called by any thread, under the
    /// lock of `block_servers`, for a request that lacks `wanted` bytes; SIZE_MAX always suffices.
    virtual void give_back_idle(std::size_t wanted) noexcept = 0;

    /// Notes that the pool with this number is about to give all its memory back, blocks in use
    /// included. Called under the lock of `block_servers`.
    virtual void note_end_of(unsigned /*pool_number*/) noexcept {}

    BlockServer* next_of_all = nullptr;  ///< link of `block_servers`

protected:
    ~BlockServer() = default;
};

inline base::Registry<BlockServer>& block_servers() noexcept {
    return base::the_only<base::Registry<BlockServer>>.get();
}
/// The number of servers with an idle plan. Changed under the lock of `block_servers`; relaxed,
/// since a caller that misses a change acts as if it had come earlier.
extern constinit std::atomic<std::size_t> idle_plan_count;
/// Calls `give_back_idle` of all servers. Does nothing and returns false if a thread holds the lock
/// of the registry. The caller holds no lock of a pool.
bool give_back_idle_plans(std::size_t wanted = SIZE_MAX) noexcept;

/// What the calling thread's requests look at.
struct Serving {
    /// Larger requests go to the server.
    std::size_t max_unserved_bytes = SIZE_MAX;
    BlockServer* server = nullptr;
};
extern TENSORPOOL_API constinit thread_local Serving serving TENSORPOOL_INITIAL_EXEC;

/// Changes how the calling thread is served for the lifetime of this object. Scopes nest.
class ServingThread {
public:
    explicit ServingThread(Serving now) noexcept : before_(serving) { serving = now; }
    ~ServingThread() { serving = before_; }
    ServingThread(const ServingThread&) = delete;
    ServingThread& operator=(const ServingThread&) = delete;

private:
    Serving before_;
};

/// While an object of this class exists, pools call no `on_event` on its thread.
class QuietEvents {
public:
    QuietEvents() noexcept;
    ~QuietEvents();
    QuietEvents(const QuietEvents&) = delete;
    QuietEvents& operator=(const QuietEvents&) = delete;

    static bool exist() noexcept;

private:
    const bool before_;
};

}  // namespace tensorpool::kinds
