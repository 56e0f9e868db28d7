#pragma once

namespace tensorpool::interpose {

/// How many calls of this thread on the pool are under way that may take its locks. While there is
/// one, what the thread asks for is the next allocator's: the pool itself, or the C library on its
/// behalf, may be asking under one of those locks.
extern constinit thread_local unsigned visits
    [[gnu::visibility("hidden"), gnu::tls_model("initial-exec")]];

inline bool is_inside_pool() noexcept {
    return visits != 0;
}

/// The same may free a block of the pool: it is freed when the last call has ended. The first bytes
/// of the block, which nobody uses any more, hold the list.
void free_when_outside(void* p) noexcept;

void enter_pool() noexcept;
void leave_pool() noexcept;

/// A call on the pool.
class Visit {
public:
    Visit() noexcept { enter_pool(); }
    ~Visit() { leave_pool(); }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
};

}  // namespace tensorpool::interpose
