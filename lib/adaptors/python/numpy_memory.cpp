#include "adaptors/python/numpy_memory.hpp"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>

#include <tensorpool/detail/address_range.hpp>
#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"

// NumPy keeps no freed blocks of ours: its lists of small ones are part of its own handler, and
// what they cost is what these functions compete with. So blocks up to 64 KiB go through the pool's
// inline path in both directions: an array of 8 bytes takes 67 ns, 66 with NumPy's own and 79 where
// every call took the slow path; a hundred at once take 88 ns each, and 101 with NumPy's own.

namespace tensorpool::python {
namespace {

/// From this size on NumPy's own handler asks for huge pages (NumPy 1.24, _npy_alloc_cache). Fewer
/// page faults are half of what they gain: work E of perf/workloads takes a tenth less user time.
constexpr std::size_t huge_from_bytes = std::size_t{4} << 20;
// Relaxed: either value is right for an array that is made meanwhile.
constinit std::atomic<bool> asks_for_huge_pages = false;

// As malloc's of the C library, a block of no bytes is not null: null means failure.
std::size_t at_least_one(std::size_t bytes) noexcept {
    return std::max<std::size_t>(bytes, 1);
}

/// For memory that a thread has not used for this bucket yet, that is too large for buckets, or of
/// which there is no more.
void* allocate_slowly(std::size_t bytes) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    const bool huge =
        bytes >= huge_from_bytes && asks_for_huge_pages.load(std::memory_order_relaxed);
    if (!huge) return pool.try_allocate_prefaulted(bytes);
    void* const block = pool.try_allocate(bytes);
    if (block != nullptr) platform::prefer_huge_pages(block, bytes);
    return block;
}

}  // namespace

void set_huge_pages(bool wanted) noexcept {
    asks_for_huge_pages.store(wanted, std::memory_order_relaxed);
}

void* allocate(void*, std::size_t bytes) noexcept {
    bytes = at_least_one(bytes);
    const unsigned bucket = detail::bucket_of(bytes);
    if (bucket < detail::bucket_count) {
        void* const block = detail::first_thread_cache().pop(bucket, bytes);
        if (block != nullptr) [[likely]]
            return block;
    }
    return allocate_slowly(bytes);
}

// Large ones come without huge pages, as NumPy's do: of those that are fresh, nothing is touched
// yet.
void* allocate_zeroed(void*, std::size_t count, std::size_t element_bytes) noexcept {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes)) bytes = SIZE_MAX;
    bytes = at_least_one(bytes);
    if (bytes > detail::largest_block_bytes) {
        return get_global_memory_pool().try_allocate_zeroed(1, bytes);
    }
    void* const block = allocate(nullptr, bytes);
    if (block != nullptr) std::memset(block, 0, bytes);
    return block;
}

// NumPy does not say how much the block held, so all that may be used of it is kept.
void* reallocate(void*, void* block, std::size_t bytes) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    try {
        return pool.reallocate(block, pool.usable_size(block), at_least_one(bytes));
    } catch (const std::exception&) {
        return nullptr;
    }
}

// The size is not always what was asked for: an array resized to no elements asked for one and
// frees 1 byte (NumPy 1.24, PyArray_Resize and array_dealloc), and NEP 49 knows of such places. So
// the page map says what the block is. Only the pool may say that it is none.
void deallocate(void*, void* block, std::size_t) noexcept {
    MemoryPool& pool = get_global_memory_pool();
    if (!detail::pool_addresses.contains(block)) return pool.deallocate(block);
    const std::size_t usable = detail::bytes_of_block_in_use(block);
    // 0 is not, nor are the finer sizes of malloc.
    const unsigned bucket = detail::bucket_of(usable);
    const bool is_of_bucket =
        bucket < detail::bucket_count && detail::bucket_bytes(bucket) == usable;
    return is_of_bucket ? pool.deallocate(block, usable) : pool.deallocate(block);
}

}  // namespace tensorpool::python
