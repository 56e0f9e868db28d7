#include "platform/stacks/stack_memory.hpp"

namespace tensorpool::platform {

bool StackMemory::is_readable(std::uintptr_t) noexcept {
    return true;
}

}  // namespace tensorpool::platform
