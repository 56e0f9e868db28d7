#pragma once

#include <pthread.h>

#include <cerrno>

namespace tensorpool::platform {

/// A scope in which the system is called. It restores `errno` at its end: allocating through this
/// library must not change `errno`, as `free` must not according to POSIX 2024. The thread is not
/// cancelled (`pthread_cancel`) within the scope, because it may hold locks of the library and no
/// destructor would release them.
class SystemCalls {
public:
    SystemCalls() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &could_cancel_); }
    ~SystemCalls() {
        pthread_setcancelstate(could_cancel_, nullptr);
        errno = errno_before_;
    }
    SystemCalls(const SystemCalls&) = delete;
    SystemCalls& operator=(const SystemCalls&) = delete;

private:
    int errno_before_ = errno;
    int could_cancel_ = 0;
};

}  // namespace tensorpool::platform
