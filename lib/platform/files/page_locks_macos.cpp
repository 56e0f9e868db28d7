// What macOS does not report. The rest is in page_locks_posix.cpp.

#include "platform/files/page_locks.hpp"

#include "platform/platform.hpp"

namespace tensorpool::platform {

std::size_t locked_memory() noexcept {
    return 0;
}

MemoryRoom memory_room() noexcept {
    return {committable_memory(), total_memory(), false};
}

}  // namespace tensorpool::platform
