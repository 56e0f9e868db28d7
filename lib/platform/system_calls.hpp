#pragma once

#include <cerrno>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace tensorpool::platform {

/// A scope in which the system is called. At its end `errno` has its value back: what is allocated
/// through us must not change it, as `free` must not by POSIX of 2024. Within it the thread is not
/// cancelled (`pthread_cancel`), for it may hold locks of ours, and no destructor would run.
class SystemCalls {
public:
    SystemCalls() noexcept {
#ifndef _WIN32
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &could_cancel_);
#endif
    }
    ~SystemCalls() {
#ifndef _WIN32
        pthread_setcancelstate(could_cancel_, nullptr);
#endif
        errno = errno_before_;
    }
    SystemCalls(const SystemCalls&) = delete;
    SystemCalls& operator=(const SystemCalls&) = delete;

private:
    int errno_before_ = errno;
    int could_cancel_ = 0;
};

}  // namespace tensorpool::platform
