#include "platform/tools/memory_tools.hpp"

namespace tensorpool::platform {

constinit std::atomic<MemoryTool> found_memory_tool = MemoryTool::unknown;

MemoryTool memory_tool() noexcept {
    MemoryTool tool = found_memory_tool.load(std::memory_order_relaxed);
    if (tool != MemoryTool::unknown) return tool;
    tool = present_sanitizer();
    if (tool == MemoryTool::none && is_memcheck_present()) tool = MemoryTool::memcheck;
    found_memory_tool.store(tool, std::memory_order_relaxed);
    return tool;
}

const char* name_of(MemoryTool tool) noexcept {
    switch (tool) {
        case MemoryTool::address_sanitizer:
            return "AddressSanitizer";
        case MemoryTool::memory_sanitizer:
            return "MemorySanitizer";
        case MemoryTool::memcheck:
            return "Valgrind's memcheck";
        default:
            return "no memory tool";
    }
}

const MemoryToolCalls& tool_calls() noexcept {
    return memory_tool() == MemoryTool::memcheck ? memcheck_calls : sanitizer_calls;
}

}  // namespace tensorpool::platform
