#pragma once

#include <cstddef>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "models/pattern.hpp"

namespace tensorpool::testing {

/// One size for each way in which blocks are served.
inline constexpr std::size_t sizes[] = {64, 1000, 16 << 10, 64 << 10, 100 << 10, 3 << 20};

/// Allocates, writes and frees a block of each size.
inline void use(MemoryPool& pool) {
    for (const std::size_t bytes : sizes) {
        void* const block = pool.allocate(bytes);
        Pattern(1).write(block, bytes);
        pool.deallocate(block, bytes);
    }
}

/// Allocates blocks until the pool refuses one.
inline std::vector<void*> fill(MemoryPool& pool, std::size_t bytes) {
    std::vector<void*> blocks;
    while (void* const block = pool.try_allocate(bytes)) blocks.push_back(block);
    return blocks;
}

/// Allocates the given total in blocks of `bytes` bytes and touches each of their pages.
inline std::vector<void*> touched_blocks(MemoryPool& pool, std::size_t total, std::size_t bytes) {
    std::vector<void*> blocks(total / bytes);
    for (void*& block : blocks) {
        block = pool.allocate(bytes);
        for (std::size_t at = 0; at < bytes; at += 4096) static_cast<char*>(block)[at] = 1;
    }
    return blocks;
}

/// Frees the blocks, with their size unless it is 0.
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
