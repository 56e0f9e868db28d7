#include "platform/tools/memory_tools.hpp"

#include "platform/tools/sanitizers.hpp"

namespace tensorpool::platform {

constinit std::atomic<MemoryTool> found_memory_tool = MemoryTool::unknown;

MemoryTool memory_tool() noexcept {
    MemoryTool tool = found_memory_tool.load(std::memory_order_relaxed);
    if (tool != MemoryTool::unknown) return tool;
    tool = sanitizers::present();
    if (tool == MemoryTool::none && memcheck::is_present()) tool = MemoryTool::memcheck;
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

namespace marks {
namespace {

bool is_memcheck() noexcept {
    return memory_tool() == MemoryTool::memcheck;
}

const char* at(const void* address, std::size_t offset) noexcept {
    return static_cast<const char*>(address) + offset;
}

}  // namespace

void allocate(const MarkedBlock& block) noexcept {
    if (is_memcheck()) return memcheck::allocate(block);
    sanitizers::open_fresh(block.address, block.requested);
    sanitizers::close(at(block.address, block.requested), block.usable - block.requested);
}

void resize(const MarkedBlock& block, std::size_t kept) noexcept {
    if (is_memcheck()) return memcheck::resize(block, kept);
    if (kept < block.requested) {
        sanitizers::open_fresh(at(block.address, kept), block.requested - kept);
    }
    sanitizers::close(at(block.address, block.requested), block.usable - block.requested);
}

void free(const MarkedBlock& block) noexcept {
    if (is_memcheck()) return memcheck::free(block);
    sanitizers::close(block.address, block.usable);
}

void free_within(const void* address, std::size_t bytes) noexcept {
    if (is_memcheck()) return memcheck::free_within(address, bytes);
    sanitizers::close(address, bytes);
}

void define(const void* address, std::size_t bytes) noexcept {
    if (is_memcheck()) return memcheck::define(address, bytes);
    sanitizers::define(address, bytes);
}

void close(const void* address, std::size_t bytes) noexcept {
    if (is_memcheck()) return memcheck::close(address, bytes);
    sanitizers::close(address, bytes);
}

void open(const void* address, std::size_t bytes) noexcept {
    if (is_memcheck()) return memcheck::open(address, bytes);
    sanitizers::open(address, bytes);
}

bool is_closed(const void* address) noexcept {
    return is_memcheck() ? memcheck::is_closed(address) : sanitizers::is_closed(address);
}

}  // namespace marks
}  // namespace tensorpool::platform
