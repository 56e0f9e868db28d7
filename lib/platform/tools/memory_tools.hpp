#pragma once

/// @file
/// Marks for tools that watch each access of a program: AddressSanitizer, MemorySanitizer, and
/// Valgrind's memcheck. The library hands out parts of memory that it got in one piece. The marks
/// show the tools these parts as if each came from `malloc`.
///
/// Without such a tool each function costs one test of a global variable. The functions are called
/// on slow paths only: where a tool is present, the inline paths find nothing.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

enum class MemoryTool : std::uint8_t {
    unknown,
    none,
    address_sanitizer,
    memory_sanitizer,
    memcheck
};

/// What `memory_tool` found; `unknown` before its first call. Relaxed: each thread finds the same.
extern constinit std::atomic<MemoryTool> found_memory_tool;

/// Returns the tool that watches this process, or `none`.
MemoryTool memory_tool() noexcept;
/// Returns the tool's name for messages.
const char* name_of(MemoryTool tool) noexcept;

/// Returns whether a tool watches this process. Cheap if there is none.
inline bool has_memory_tool() noexcept {
    const MemoryTool found = found_memory_tool.load(std::memory_order_relaxed);
    if (found == MemoryTool::none) [[likely]]
        return false;
    return found != MemoryTool::unknown || memory_tool() != MemoryTool::none;
}

/// A block that the library hands out.
struct MarkedBlock {
    const void* address;
    std::size_t requested;  ///< what the caller may access
    std::size_t usable;     ///< the whole block; the rest becomes a red zone
    /// The block lies in memory that the caller lent, which may be a block itself. memcheck cannot
    /// record a block inside a block, so its reports lack the stacks.
    bool is_in_buffer = false;
};

/// What a tool is notified of; see the functions below.
struct MemoryToolCalls {
    void (*allocate)(const MarkedBlock& block) noexcept;
    void (*resize)(const MarkedBlock& block, std::size_t kept) noexcept;
    void (*free)(const MarkedBlock& block) noexcept;
    void (*free_within)(const void* address, std::size_t bytes) noexcept;
    void (*define)(const void* address, std::size_t bytes) noexcept;
    void (*close)(const void* address, std::size_t bytes) noexcept;
    void (*open)(const void* address, std::size_t bytes) noexcept;
    bool (*is_closed)(const void* address) noexcept;
};
/// The calls for the tool of this process. REQUIRES: has_memory_tool()
const MemoryToolCalls& tool_calls() noexcept;

/// AddressSanitizer and MemorySanitizer, which a program may be built with even if this library is
/// not.
extern const MemoryToolCalls sanitizer_calls;
/// Returns which of the two this process contains, or `none`.
MemoryTool present_sanitizer() noexcept;
/// The requests to Valgrind's memcheck, which are sequences of instructions without effect outside
/// of Valgrind.
extern const MemoryToolCalls memcheck_calls;
/// Returns whether memcheck runs this process. Other tools of Valgrind do not count.
bool is_memcheck_present() noexcept;

/// Makes a block accessible, with undefined content, and the rest of it inaccessible.
inline void mark_allocated(const MarkedBlock& block) noexcept {
    if (has_memory_tool()) [[unlikely]]
        tool_calls().allocate(block);
}
/// Changes the requested bytes of a block that stays where it is. `kept` bytes were requested
/// before; what follows is undefined.
inline void mark_resized(const MarkedBlock& block, std::size_t kept) noexcept {
    if (has_memory_tool()) [[unlikely]]
        tool_calls().resize(block, kept);
}
/// Returns whether `mark_resized` needs the exact number of bytes that were requested before.
inline bool resizes_need_old_size() noexcept {
    return has_memory_tool() && memory_tool() == MemoryTool::memcheck;
}
/// Makes a freed block inaccessible. `requested` is not used.
inline void mark_freed(const MarkedBlock& block) noexcept {
    if (has_memory_tool()) [[unlikely]]
        tool_calls().free(block);
}
/// Frees all blocks in this memory, which is not a buffer of the caller, and makes all of it
/// inaccessible.
inline void mark_freed_within(const void* address, std::size_t bytes) noexcept {
    if (has_memory_tool() && bytes != 0) [[unlikely]]
        tool_calls().free_within(address, bytes);
}
/// Notes that the content of a part of a block is defined without a write that the tool sees.
inline void mark_defined(const void* address, std::size_t bytes) noexcept {
    if (has_memory_tool()) [[unlikely]]
        tool_calls().define(address, bytes);
}
/// Makes memory inaccessible until it becomes part of a block, or is opened or returned. It
/// contains no block.
inline void mark_closed(const void* address, std::size_t bytes) noexcept {
    if (has_memory_tool()) [[unlikely]]
        tool_calls().close(address, bytes);
}
/// Makes memory without blocks accessible for others than the library. The content is undefined.
inline void mark_open(const void* address, std::size_t bytes) noexcept {
    if (has_memory_tool()) [[unlikely]]
        tool_calls().open(address, bytes);
}
/// Forgets all blocks in memory that goes back to the system, where other code may get the
/// addresses.
inline void mark_returned(const void* address, std::size_t bytes) noexcept {
    mark_freed_within(address, bytes);
    mark_open(address, bytes);
}
/// Returns whether a tool is present and takes the byte at this address for inaccessible.
inline bool is_marked_closed(const void* address) noexcept {
    return has_memory_tool() && tool_calls().is_closed(address);
}

}  // namespace tensorpool::platform
