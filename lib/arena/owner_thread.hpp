#pragma once

#include <atomic>
#include <thread>

#include <tensorpool/arena_options.hpp>

namespace tensorpool::arena {

/// The only thread that may use an arena of one thread (Sharing::one_thread). Checks nothing if the
/// options share the arena or leave out the checks of calls.
class OwnerThread {
public:
    /// `options` outlives this.
    explicit OwnerThread(const ArenaOptions& options) noexcept : options_(options) {}

    /// Stops the program if the calling thread is not the one that allocated first. `call` names
    /// the function in the message.
    void check(const char* call) const noexcept;
    /// Checks the thread of an allocation. The first thread that allocates becomes the owner.
    void check_allocating() noexcept;

private:
    bool is_checked() const noexcept;

    const ArenaOptions& options_;
    std::atomic<std::thread::id> owner_ = std::thread::id();
};

}  // namespace tensorpool::arena
