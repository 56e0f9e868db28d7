#pragma once

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::testing {

/// Returns whether the calling thread's small blocks take the inline path, after one that may not.
inline bool inline_path_is_open() {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.allocate(100), 100);
    detail::ThreadCache& cache =
        detail::thread_cache(detail::TablePlace(detail::GlobalPool::number));
    void* const block = cache.pop(detail::bucket_of(100), 100);
    if (block != nullptr) pool.deallocate(block, 100);
    return block != nullptr;
}

}  // namespace tensorpool::testing
