#pragma once

#include <csignal>

namespace tensorpool::command::serve {

/// SIGINT, SIGTERM and SIGHUP as something to wait for. Made before the first thread, for threads
/// begin with the mask of their maker.
class EndSignals {
public:
    EndSignals();
    ~EndSignals();
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    /// Until one of them comes.
    void wait() const;

private:
    sigset_t signals_;
    sigset_t before_;
};

/// As many descriptors as the system lets this process have: each process watched takes some.
void raise_descriptor_limit();

}  // namespace tensorpool::command::serve
