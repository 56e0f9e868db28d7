#pragma once

#include <pthread.h>
#include <threads.h>

namespace tensorpool::platform {

/// The functions of the C library that create threads.
using PthreadCreate = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using ThrdCreate = int (*)(thrd_t*, thrd_start_t, void*);

}  // namespace tensorpool::platform
