// Functions as a caller compiles them. check_fast_path.cmake reads their machine code.

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

using tensorpool::MemoryPool;

extern "C" {

void* fast_path_allocate(MemoryPool& pool, std::size_t bytes) {
    return pool.allocate(bytes);
}

void fast_path_deallocate(MemoryPool& pool, void* p, std::size_t bytes) {
    pool.deallocate(p, bytes);
}

// Uses the block between the two calls, as callers do.
void fast_path_pair(MemoryPool& pool, std::size_t bytes) {
    char* const p = static_cast<char*>(pool.allocate(bytes));
    *p = 1;
    pool.deallocate(p, bytes);
}

// Only a handle of another source, or of a large alignment, ends by a call.
void fast_path_handle(MemoryPool& pool, std::size_t bytes) {
    const tensorpool::PooledAllocation handle(pool, bytes);
    *static_cast<char*>(handle.get()) = 1;
}

void fast_path_end_handle(tensorpool::PooledAllocation& handle) {
    handle.reset();
}

// Bucket and pool are known at compile time.
void fast_path_constant() {
    MemoryPool& pool = tensorpool::get_global_memory_pool();
    char* const p = static_cast<char*>(pool.allocate(1000));
    *p = 1;
    pool.deallocate(p, 1000);
}
}
