// Fences in all threads of the process, by membarrier(2).

#include <linux/membarrier.h>
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#endif
#include <sys/syscall.h>
#include <unistd.h>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

bool membarrier(int command) noexcept {
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

}  // namespace

bool prepare_fences() noexcept {
    const SystemCalls system_calls;
    return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

bool is_single_threaded() noexcept {
#if __has_include(<sys/single_threaded.h>)
    return __libc_single_threaded;
#else
    return false;
#endif
}

bool fence_all_threads() noexcept {
    const SystemCalls system_calls;
    return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

}  // namespace tensorpool::platform
