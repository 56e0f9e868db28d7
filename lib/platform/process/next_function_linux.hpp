#pragma once

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <threads.h>

namespace tensorpool::platform {

/// Returns the function of this name that the loader finds after the calling library, in its search
/// order; nullptr if there is none.
void* next_function(const char* name) noexcept;

/// Functions of the C library that the interposer replaces, and those of <malloc.h>.
using Dlopen = void* (*)(const char*, int) noexcept;
using PthreadCreate = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using ThrdCreate = int (*)(thrd_t*, thrd_start_t, void*);

}  // namespace tensorpool::platform
