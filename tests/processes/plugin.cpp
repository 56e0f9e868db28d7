// A plugin with the library inside. Its threads use all that asks for a call when a thread ends:
// the caches of pools and the rings of the recorder.

#include <cstring>

#include <tensorpool/memory_pool.hpp>

/// Uses two pools and returns whether their blocks kept their contents.
extern "C" __attribute__((visibility("default"))) bool plugin_use() {
    static tensorpool::MemoryPool own;
    for (std::size_t bytes = 1; bytes <= 1 << 20; bytes *= 2) {
        for (tensorpool::MemoryPool* pool : {&tensorpool::get_global_memory_pool(), &own}) {
            auto* const block = static_cast<unsigned char*>(pool->allocate(bytes));
            std::memset(block, 7, bytes);
            if (block[0] != 7 || block[bytes - 1] != 7 || !pool->owns(block)) return false;
            pool->deallocate(block, bytes);
        }
    }
    return true;
}
