#include "support/cores.hpp"

#include <pthread.h>
#include <sched.h>

namespace perf {
namespace {

/// Returns the cores that the process may use. Read before any thread is pinned.
cpu_set_t allowed_cores() noexcept {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    sched_getaffinity(0, sizeof(cores), &cores);
    return cores;
}
const cpu_set_t allowed = allowed_cores();

}  // namespace

bool stay_on_core(int index) noexcept {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
        if (!CPU_ISSET(core, &allowed) || index-- > 0) continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        return pthread_setaffinity_np(pthread_self(), sizeof(one), &one) == 0;
    }
    return false;
}

bool two_cores() noexcept {
    return CPU_COUNT(&allowed) >= 2;
}

}  // namespace perf
