#include "memory_metrics.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "support/resident.hpp"

namespace perf {
namespace {

using tensorpool::MemoryPool;

constexpr std::size_t KiB = 1024, MiB = 1024 * KiB;
constexpr std::size_t fill_bytes = 256 * MiB;

/// Pointers to blocks, in memory that is populated before anything is measured.
class Pointers {
public:
    explicit Pointers(std::size_t max_count)
        : blocks_(
              static_cast<char**>(mmap(nullptr, max_count * sizeof(char*), PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {
        if (blocks_ == MAP_FAILED) std::abort();
    }
    void allocate(MemoryPool& pool, std::size_t bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            blocks_[i] = static_cast<char*>(pool.allocate(bytes));
            std::memset(blocks_[i], 1, bytes);
        }
    }
    void deallocate(MemoryPool& pool, std::size_t bytes, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) pool.deallocate(blocks_[i], bytes);
    }

private:
    char** blocks_;
};

/// The growth of resident memory since this object was made.
class Growth {
public:
    double bytes() const {
        return static_cast<double>(resident_bytes()) - static_cast<double>(before_);
    }

private:
    std::size_t before_ = resident_bytes();
};

/// Returns the bytes of all spans of the bucket that serves `bytes`: its blocks and the gaps
/// between them.
double bucket_capacity(const MemoryPool& pool, std::size_t bytes) {
    const auto buckets = pool.statistics().buckets;
    return static_cast<double>(buckets[tensorpool::detail::bucket_of(bytes)].capacity_bytes);
}

}  // namespace

Records records(std::size_t bytes, tensorpool::Checks checks) {
    const std::size_t count = fill_bytes / bytes;
    Pointers blocks(count);
    const Growth growth;
    tensorpool::PoolOptions options;
    options.checks = checks;
    // Without huge pages only what was written is resident. The rest of a huge page would count as
    // records, although it is free memory.
    options.huge_pages = tensorpool::HugePages::never;
    MemoryPool pool(options);
    blocks.allocate(pool, bytes, count);
    const double in_use = growth.bytes();
    const double spans = bucket_capacity(pool, bytes);
    blocks.deallocate(pool, bytes, count);
    return {in_use / spans - 1, growth.bytes() / spans - 1};
}

double idle_pool() {
    const Growth growth;
    MemoryPool pool;
    return growth.bytes();
}

namespace {

void use_a_pool() {
    MemoryPool pool;
    for (std::size_t bytes = 64; bytes <= MiB; bytes *= 2) {
        void* const block = pool.allocate(bytes);
        std::memset(block, 1, bytes);
        pool.deallocate(block, bytes);
    }
}

/// Returns by how much `measure()` grows over 2,000 pools. A few pools come first, which set up
/// what all of them share.
double more_after_pools(std::size_t (*measure)()) {
    for (int i = 0; i < 20; ++i) use_a_pool();
    const std::size_t before = measure();
    for (int i = 0; i < 2000; ++i) use_a_pool();
    return static_cast<double>(measure()) - static_cast<double>(before);
}

}  // namespace

double bytes_left_by_pools() {
    return more_after_pools(resident_bytes);
}

double mappings_left_by_pools() {
    return more_after_pools(mapping_count);
}

double parked() {
    MemoryPool pool;
    for (std::size_t bytes = 64; bytes <= 64 * KiB; bytes *= 2) pool.allocate(bytes);
    return static_cast<double>(pool.statistics().parked_bytes);
}

double left_after_trim() {
    Pointers blocks(fill_bytes / 64);
    const Growth growth;
    MemoryPool pool;
    for (std::size_t bytes = 64; bytes <= 64 * MiB; bytes *= 4) {
        blocks.allocate(pool, bytes, fill_bytes / bytes);
        blocks.deallocate(pool, bytes, fill_bytes / bytes);
    }
    pool.trim();
    return growth.bytes();
}

}  // namespace perf
