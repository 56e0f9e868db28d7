// A plugin that links tensorpool as a shared library. Its static objects, its functions and the
// threads that call them use the global pool.

#include <cstring>

#include <tensorpool/memory_pool.hpp>

namespace {

using tensorpool::get_global_memory_pool;

/// Holds a block while the plugin is loaded.
struct Held {
    void* block = get_global_memory_pool().allocate(1000);
    ~Held() { get_global_memory_pool().deallocate(block, 1000); }
};
const Held held;

}  // namespace

/// Uses the pool. Returns the number of blocks in use afterwards, or 0 if a block's content was
/// wrong.
extern "C" __attribute__((visibility("default"))) unsigned long plugin_use() {
    tensorpool::MemoryPool own;
    for (std::size_t bytes = 1; bytes <= 1 << 20; bytes *= 2) {
        void* const block = get_global_memory_pool().allocate(bytes);
        std::memset(block, 1, bytes);
        if (!get_global_memory_pool().owns(block) || own.owns(block)) return 0;
        get_global_memory_pool().deallocate(block, bytes);
        own.deallocate(own.allocate(bytes), bytes);
    }
    return get_global_memory_pool().get_allocation_count() -
           get_global_memory_pool().get_deallocation_count();
}
