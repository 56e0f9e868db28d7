#pragma once

#include <atomic>
#include <cstddef>

/// The next allocator in the order in which the loader looks up names: the C library's, or one that
/// follows this library in LD_PRELOAD. It is found at the first call of each process, which the
/// loader itself makes in most cases.
namespace tensorpool::interpose {

using MallocFunction = void* (*)(std::size_t) noexcept;
using CallocFunction = void* (*)(std::size_t, std::size_t) noexcept;
using ReallocFunction = void* (*)(void*, std::size_t) noexcept;
using FreeFunction = void (*)(void*) noexcept;
using PosixMemalignFunction = int (*)(void**, std::size_t, std::size_t) noexcept;
using UsableSizeFunction = std::size_t (*)(void*) noexcept;

/// The functions that every allocator has. All others are built from these: if an allocator lacks
/// `pvalloc`, for example, the loader would find the one of another allocator. Relaxed throughout:
/// the pointers lead to code, not to data that must be visible.
struct NextAllocator {
    std::atomic<MallocFunction> malloc;
    std::atomic<CallocFunction> calloc;
    std::atomic<ReallocFunction> realloc;
    std::atomic<FreeFunction> free;
    std::atomic<PosixMemalignFunction> posix_memalign;
    std::atomic<UsableSizeFunction> usable_size;
};
// Hidden in the declaration too, so that access needs no table of the loader.
extern constinit NextAllocator next_allocator [[gnu::visibility("hidden")]];

/// Called if the next allocator refused a request: gives the free memory of all pools back to the
/// system. Returns whether there was any, so that the same request may succeed.
bool gave_memory_back() noexcept;

/// Returns the block that `request()` gets, or gets after the pools gave their free memory back.
template <class Request>
inline void* next_block(std::size_t bytes, Request request) noexcept {
    void* const block = request();
    if (block == nullptr && bytes != 0 && gave_memory_back()) [[unlikely]]
        return request();
    return block;
}
inline void* next_malloc(std::size_t bytes) noexcept {
    const MallocFunction function = next_allocator.malloc.load(std::memory_order_relaxed);
    return next_block(bytes, [=] { return function(bytes); });
}
inline void* next_calloc(std::size_t count, std::size_t bytes) noexcept {
    const CallocFunction function = next_allocator.calloc.load(std::memory_order_relaxed);
    return next_block(bytes, [=] { return function(count, bytes); });
}
inline void* next_realloc(void* p, std::size_t bytes) noexcept {
    const ReallocFunction function = next_allocator.realloc.load(std::memory_order_relaxed);
    return next_block(bytes, [=] { return function(p, bytes); });
}
inline void next_free(void* p) noexcept {
    next_allocator.free.load(std::memory_order_relaxed)(p);
}
inline int next_posix_memalign(void** to, std::size_t alignment, std::size_t bytes) noexcept {
    return next_allocator.posix_memalign.load(std::memory_order_relaxed)(to, alignment, bytes);
}
inline std::size_t next_usable_size(void* p) noexcept {
    return next_allocator.usable_size.load(std::memory_order_relaxed)(p);
}

}  // namespace tensorpool::interpose

/// Memory for requests that the loader makes during the lookup of the next allocator. It is never
/// freed. The process has only one thread that early.
namespace tensorpool::interpose {

/// Returns zeroed memory aligned to 64 bytes; nullptr if the buffer is used up or the alignment is
/// larger.
void* take_from_bootstrap_buffer(std::size_t bytes, std::size_t alignment) noexcept;
bool bootstrap_buffer_is_used() noexcept;
bool is_in_bootstrap_buffer(const void* p) noexcept;
/// Returns the size of a block in the buffer.
std::size_t bytes_in_bootstrap_buffer(const void* p) noexcept;

}  // namespace tensorpool::interpose
