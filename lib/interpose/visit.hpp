#pragma once

namespace tensorpool::interpose {

/// The number of calls of this thread on the pool that are in progress and may take its locks.
/// While it is not 0, the next allocator serves the thread's requests: they may come from the pool
/// itself, or from the C library on its behalf, under one of those locks.
extern constinit thread_local unsigned visits
    [[gnu::visibility("hidden"), gnu::tls_model("initial-exec")]];

inline bool is_inside_pool() noexcept {
    return visits != 0;
}

/// Frees a block of the pool from inside a visit: the block is freed when the last call has ended.
/// The list is kept in the first bytes of the blocks, which are no longer in use.
void free_when_outside(void* p) noexcept;

/// Begins and ends a visit. Leaving the outermost visit frees the blocks that were set aside.
void enter_pool() noexcept;
void leave_pool() noexcept;

/// A call on the pool, as a scope.
class Visit {
public:
    Visit() noexcept { enter_pool(); }
    ~Visit() { leave_pool(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
};

}  // namespace tensorpool::interpose
