// Frees blocks of whole pages through the interface of malloc, and compares the counts. A free
// that took such a block for one of a bucket would write outside the magazines of the cache.

#include <cstdlib>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

void allocate_and_free() {
    std::vector<void*> blocks(200);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = hidden(std::malloc(70'000 + i * 2'000));
        expect(blocks[i] != nullptr && is_of_pool(blocks[i]), "a block of the pool", i);
        fill(blocks[i], 1'000, i);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        expect(is_filled(blocks[i], 1'000, i), "the block's content", i);
        std::free(blocks[i]);
    }
}

}  // namespace

int main() {
    expect_interposed();
    const tensorpool::MemoryPool& pool = tensorpool::get_global_memory_pool();
    allocate_and_free();
    const tensorpool::PoolStatistics before = pool.statistics();
    allocate_and_free();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back(allocate_and_free);
    for (std::thread& thread : threads) thread.join();
    const tensorpool::PoolStatistics after = pool.statistics();
    expect(after.large.in_use_bytes == before.large.in_use_bytes, "all large blocks to be freed",
           after.large.in_use_bytes);
    expect(after.large.allocations - before.large.allocations == 1'000, "1000 allocations",
           after.large.allocations - before.large.allocations);
    expect(after.large.deallocations - before.large.deallocations == 1'000, "1000 frees",
           after.large.deallocations - before.large.deallocations);
    // No process has addresses for it: the pool does not count a refusal, which takes long.
    const std::size_t too_large = hidden(std::size_t{1} << 48);
    expect(std::malloc(too_large) == nullptr, "no block");
    expect(std::calloc(too_large, 1) == nullptr, "no block");
    expect(aligned_alloc(64, too_large) == nullptr, "no block");
    expect(pool.statistics().failures == after.failures, "no failure of the pool",
           pool.statistics().failures);
    return failures == 0 ? 0 : 1;
}
