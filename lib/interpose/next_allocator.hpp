#pragma once

#include <atomic>
#include <cstddef>

/// The allocator behind us in the order in which the loader looks: the C library's, or one that
/// stands after us in LD_PRELOAD. Found at the first call of each process, mostly the loader's own.
namespace tensorpool::interpose {

using MallocFunction = void* (*)(std::size_t) noexcept;
using CallocFunction = void* (*)(std::size_t, std::size_t) noexcept;
using ReallocFunction = void* (*)(void*, std::size_t) noexcept;
using FreeFunction = void (*)(void*) noexcept;
using PosixMemalignFunction = int (*)(void**, std::size_t, std::size_t) noexcept;
using UsableSizeFunction = std::size_t (*)(void*) noexcept;

/// What every allocator has. All else is made of these: where one lacks, say, `pvalloc`, the loader
/// would find another allocator's. Relaxed throughout: they lead to code and to nothing written.
struct NextAllocator {
    std::atomic<MallocFunction> malloc;
    std::atomic<CallocFunction> calloc;
    std::atomic<ReallocFunction> realloc;
    std::atomic<FreeFunction> free;
    std::atomic<PosixMemalignFunction> posix_memalign;
    std::atomic<UsableSizeFunction> usable_size;
};
// Hidden where it is declared too: then no table of the loader stands in between.
extern constinit NextAllocator next_allocator [[gnu::visibility("hidden")]];

inline void* next_malloc(std::size_t bytes) noexcept {
    return next_allocator.malloc.load(std::memory_order_relaxed)(bytes);
}
inline void* next_calloc(std::size_t count, std::size_t bytes) noexcept {
    return next_allocator.calloc.load(std::memory_order_relaxed)(count, bytes);
}
inline void* next_realloc(void* p, std::size_t bytes) noexcept {
    return next_allocator.realloc.load(std::memory_order_relaxed)(p, bytes);
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
