#pragma once

#include <pthread.h>

namespace tensorpool::platform {

/// Within this scope no call to the system ends the thread that another one has cancelled
/// (pthread_cancel): a call of ours is no place to end in, as malloc is none.
class NoCancellation {
public:
    NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    ~NoCancellation() {
        int state = 0;
        pthread_setcancelstate(before_, &state);
    }
    NoCancellation(const NoCancellation&) = delete;
    NoCancellation& operator=(const NoCancellation&) = delete;

private:
    int before_ = 0;
};

}  // namespace tensorpool::platform
