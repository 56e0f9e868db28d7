// What a caller compiles; check_fast_path.cmake reads the machine code.

#include <tensorpool/memory_pool.hpp>

using tensorpool::MemoryPool;

extern "C" {

void* fast_path_allocate(MemoryPool& pool, std::size_t bytes) {
    return pool.allocate(bytes);
}

void fast_path_deallocate(MemoryPool& pool, void* p, std::size_t bytes) {
    pool.deallocate(p, bytes);
}

// With a use of the block in between, as a caller has it.
void fast_path_pair(MemoryPool& pool, std::size_t bytes) {
    char* const p = static_cast<char*>(pool.allocate(bytes));
    *p = 1;
    pool.deallocate(p, bytes);
}

// The bucket is known, and the pool is.
void fast_path_constant() {
    MemoryPool& pool = tensorpool::get_global_memory_pool();
    char* const p = static_cast<char*>(pool.allocate(1000));
    *p = 1;
    pool.deallocate(p, 1000);
}
}
