#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/export.hpp>

#include "base/registry.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

/// Serves the larger requests that some threads make of the global pool, or only notes the frees of
/// some blocks. The layers `planned` and `stash` implement it. A thread is *served* while a
/// `ServingThread` exists on it.
class BlockServer {
public:
    /// Allocates a block, or lets `pool` allocate it. Returns nullptr if neither can;
    /// `path.refusal` then holds the reason. Called on served threads. During
    /// the call, the thread is not served.
    virtual void* serve(Pool& pool, std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                        Pool::FirstTouch first_touch) noexcept = 0;
    /// Notes the free of a block of the pool that this server had marked with `Pool::note_free_of`.
    /// Returns false if it was another server. Called by any thread, under the lock of
    /// `block_servers`, before the block is freed.
    virtual bool note_free(void* p) noexcept = 0;

    /// Returns the memory of a plan that no iteration uses and of which no block is in use, if
    /// requests since its last iteration lacked a good part of it. Called by any thread, under the
    /// lock of `block_servers`, for a request that lacks `wanted` bytes; SIZE_MAX always suffices.
    virtual void give_back_idle(std::size_t wanted) noexcept = 0;

    /// Notes that a pool is about to give all its memory back, blocks in use included. Called under
    /// the lock of `block_servers`.
    virtual void note_end_of(const Pool&) noexcept {}

    BlockServer* next_of_all = nullptr;  ///< link of `block_servers`

protected:
    ~BlockServer() = default;
};

/// Returns the registry of all servers.
base::Registry<BlockServer>& block_servers() noexcept;
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

}  // namespace abi_2
}  // namespace tensorpool::detail
