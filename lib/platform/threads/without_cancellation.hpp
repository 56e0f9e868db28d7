#pragma once

#include <pthread.h>

namespace tensorpool::platform {

/// As long as it exists, this thread is not cancelled. A thread that is cancelled while it writes
/// to a stream unwinds its stack, which ends the program in functions that are noexcept.
class WithoutCancellation {
public:
    WithoutCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &former_); }
    ~WithoutCancellation() { pthread_setcancelstate(former_, nullptr); }
    WithoutCancellation(const WithoutCancellation&) = delete;
    WithoutCancellation& operator=(const WithoutCancellation&) = delete;

private:
    int former_ = 0;
};

}  // namespace tensorpool::platform
