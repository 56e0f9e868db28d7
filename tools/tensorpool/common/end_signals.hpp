#pragma once

#include <chrono>
#include <csignal>

namespace tensorpool::command {

/// SIGINT, SIGTERM and SIGHUP as something to wait for, instead of the end of the program. Made
/// before the first thread, for threads begin with the mask of their maker.
class EndSignals {
public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    /// Until one of them comes.
    void wait() const;
    /// Sleeps, until one of them comes. Whether one came, now or before.
    bool come_within(std::chrono::nanoseconds time);

private:
    sigset_t signals_{};
    sigset_t before_{};
    bool came_ = false;
};

}  // namespace tensorpool::command
