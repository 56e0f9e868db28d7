#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "platform/stacks/stack_memory.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::platform {

// The kernel reads the set of signals, and then rejects what should be done with it. memcheck would
// report that the set has no values.
bool StackMemory::is_readable(std::uintptr_t address) noexcept {
    if (has_memory_tool() && memory_tool() == MemoryTool::memcheck) return true;
    constexpr int no_way = -1;
    constexpr std::size_t bytes_of_set = 8;
    const int before = errno;
    const bool is_rejected =
        ::syscall(SYS_rt_sigprocmask, no_way, address, nullptr, bytes_of_set) == -1 &&
        errno == EINVAL;
    errno = before;
    return is_rejected;
}

}  // namespace tensorpool::platform
