#include "interpose/blocks_of_pool.hpp"

#include <algorithm>
#include <cerrno>

#include <tensorpool/memory_pool.hpp>

#include "interpose/next_allocator.hpp"
#include "interpose/visit.hpp"

namespace tensorpool::interpose {
namespace {

constexpr unsigned pool_number = detail::GlobalPool::number;

void* or_enomem(void* block) noexcept {
    if (block == nullptr) [[unlikely]]
        errno = ENOMEM;
    return block;
}

[[gnu::noinline]] void* allocate_slowly(std::size_t bytes) noexcept {
    const Visit visit;
    return or_enomem(get_global_memory_pool().try_allocate(bytes));
}

}  // namespace

void* allocate_in_pool(std::size_t bytes) noexcept {
    if (is_inside_pool()) [[unlikely]]
        return next_malloc(bytes);
    const unsigned bucket = detail::bucket_of(bytes);
    if (bucket < detail::bucket_count) {
        void* const block = detail::thread_cache(pool_number).pop(bucket, bytes);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slowly(bytes);
}

void* allocate_zeroed_in_pool(std::size_t bytes) noexcept {
    if (is_inside_pool()) [[unlikely]]
        return next_calloc(1, bytes);
    const Visit visit;
    return or_enomem(get_global_memory_pool().try_allocate_zeroed(1, bytes));
}

void* allocate_aligned_in_pool(std::size_t bytes, std::size_t alignment) noexcept {
    if (is_inside_pool()) [[unlikely]] {
        void* block = nullptr;
        const int error = next_posix_memalign(&block, std::max(alignment, sizeof(void*)), bytes);
        if (error != 0) errno = error;
        return error == 0 ? block : nullptr;
    }
    const Visit visit;
    return or_enomem(get_global_memory_pool().try_allocate(bytes, alignment));
}

void free_in_pool(void* p) noexcept {
    if (is_inside_pool()) [[unlikely]]
        return free_when_outside(p);
    const Visit visit;
    get_global_memory_pool().deallocate(p);
}

}  // namespace tensorpool::interpose
