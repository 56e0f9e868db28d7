#pragma once

/// Makes the allocator that serves malloc return free memory to the system, by the function that
/// this allocator has for it.

#include <dlfcn.h>
#include <malloc.h>

#include <cstddef>

namespace perf {

template <class Function>
Function* find(const char* name) {
    return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

inline void purge() {
    using MallCtl = int(const char*, void*, std::size_t*, void*, std::size_t);
    if (auto* const control = find<MallCtl>("mallctl")) {
        control("thread.tcache.flush", nullptr, nullptr, nullptr, 0);
        control("arena.4096.purge", nullptr, nullptr, nullptr, 0);  // 4096 means all arenas
    } else if (auto* const release = find<void()>("MallocExtension_ReleaseFreeMemory")) {
        release();
    } else if (auto* const collect = find<void(bool)>("mi_collect")) {
        collect(true);
    } else {
        malloc_trim(0);
    }
}

}  // namespace perf
