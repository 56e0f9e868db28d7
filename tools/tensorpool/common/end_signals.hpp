#pragma once

#include <chrono>
#include <csignal>

namespace tensorpool::command {

/// Blocks SIGINT, SIGTERM and SIGHUP, so that the program can wait for them instead of being ended
/// by them. Construct it before starting a thread: threads inherit the signal mask of the thread
/// that creates them.
class EndSignals {
public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    /// Waits until one of the signals arrives.
    void wait() const;
    /// Sleeps for `time`, or until one of the signals arrives. Returns whether one has arrived, now
    /// or before.
    bool come_within(std::chrono::nanoseconds time);

private:
    sigset_t signals_{};
    sigset_t before_{};
    bool came_ = false;
};

}  // namespace tensorpool::command
