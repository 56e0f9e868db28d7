#pragma once

#include <csignal>

namespace tensorpool::platform {

/// Blocks SIGXFSZ within a scope. A write beyond the limit on file sizes sends this signal, which
/// ends the program by default. Within the scope such a write only fails.
class NoSizeSignal {
public:
    NoSizeSignal() noexcept {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    }
    ~NoSizeSignal() {
        sigset_t pending;
        int taken = 0;
        // The signal was sent to this thread, so no other thread can take it.
        if (sigismember(&before_, SIGXFSZ) == 0 && sigpending(&pending) == 0 &&
            sigismember(&pending, SIGXFSZ) == 1) {
            sigwait(&signal_, &taken);
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoSizeSignal(const NoSizeSignal&) = delete;
    NoSizeSignal& operator=(const NoSizeSignal&) = delete;

private:
    sigset_t signal_;
    sigset_t before_;
};

}  // namespace tensorpool::platform
