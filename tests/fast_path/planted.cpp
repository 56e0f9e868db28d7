// Fast paths that each contain a forbidden instruction, which the check must find.

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

using tensorpool::MemoryPool;

extern "C" {

void* fast_path_locked(MemoryPool& pool, std::atomic<unsigned>& count) {
    count.fetch_add(1, std::memory_order_relaxed);
    return pool.allocate(100);
}

void* fast_path_exchanging(MemoryPool& pool, std::atomic<void*>& last) {
    return last.exchange(pool.allocate(100));
}

void fast_path_calling(MemoryPool& pool, std::size_t bytes) {
    std::free(pool.allocate(bytes));
}

void fast_path_calling_through_a_pointer(void (*function)()) {
    function();
    asm volatile("");
}

void fast_path_calling_the_system() {
    asm volatile("syscall");
}
}
