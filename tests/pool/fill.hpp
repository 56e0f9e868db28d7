#pragma once

#include <cstddef>
#include <cstring>
#include <vector>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::testing {

/// Of each way that blocks are served.
inline constexpr std::size_t sizes[] = {64, 1000, 16 << 10, 64 << 10, 100 << 10, 3 << 20};

/// Takes, touches and frees a block of each.
inline void use(MemoryPool& pool) {
    for (const std::size_t bytes : sizes) {
        void* const block = pool.allocate(bytes);
        std::memset(block, 1, bytes);
        pool.deallocate(block, bytes);
    }
}

/// Blocks until the pool refuses one more.
inline std::vector<void*> fill(MemoryPool& pool, std::size_t bytes) {
    std::vector<void*> blocks;
    while (void* const block = pool.try_allocate(bytes)) blocks.push_back(block);
    return blocks;
}

/// So many bytes in blocks of `bytes`, each page of them touched.
inline std::vector<void*> touched_blocks(MemoryPool& pool, std::size_t total, std::size_t bytes) {
    std::vector<void*> blocks(total / bytes);
    for (void*& block : blocks) {
        block = pool.allocate(bytes);
        for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(block)[at] = 1;
    }
    return blocks;
}

/// Frees them, by their size where it is not 0.
inline void free_all(MemoryPool& pool, const std::vector<void*>& blocks, std::size_t bytes) {
    for (void* const block : blocks) {
        if (bytes == 0) {
            pool.deallocate(block);
        } else {
            pool.deallocate(block, bytes);
        }
    }
}

}  // namespace tensorpool::testing
