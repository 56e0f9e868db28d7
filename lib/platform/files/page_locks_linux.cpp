// What only Linux reports. The rest is in page_locks_posix.cpp.

#include "platform/files/page_locks.hpp"

#include <algorithm>
#include <string_view>

#include "platform/files/fields_linux.hpp"
#include "platform/files/line_reader_linux.hpp"
#include "platform/memory/memory_limits_linux.hpp"
#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {

std::size_t locked_memory() noexcept {
    const SystemCalls system_calls;
    LineReader lines("/proc/self/status");
    for (std::string_view line; lines.next(line);) {
        if (take_field(line, ':') != "VmLck") continue;
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        return parse_number(line).value_or(0) * 1024;
    }
    return 0;
}

MemoryRoom memory_room() noexcept {
    const SystemCalls system_calls;
    const MemoryLimits limits = read_memory_limits("");
    if (limits.binding != no_limit) return {limits.available, limits.binding, true};
    return {limits.available, total_memory(), false};
}

}  // namespace tensorpool::platform
