// For builds without Valgrind's header: memcheck is never found, and nothing else is called.

#include "platform/tools/memory_tools.hpp"

namespace tensorpool::platform {

const MemoryToolCalls memcheck_calls = {};

bool is_memcheck_present() noexcept {
    return false;
}

}  // namespace tensorpool::platform
