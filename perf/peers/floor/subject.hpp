#pragma once

/// The least work of a pool with buckets: for each bucket a list of free blocks of this thread, and
/// one counter for each operation. Other threads cannot free its blocks, no memory is released, and
/// nothing is checked.

#include <bit>
#include <cstdint>
#include <cstdlib>

#include <sys/mman.h>

#include "support/subject_concept.hpp"

namespace perf {

struct FreeList {
    static constexpr std::size_t max_blocks = 16384;
    void** top = nullptr;
    void** bottom = nullptr;
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
};

inline void* fresh_pages(std::size_t bytes) {
    void* const pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) std::abort();
    return pages;
}

/// Fills an empty list with `max_blocks` blocks. Their pages are not touched.
[[gnu::noinline]] inline void fill(FreeList& list, std::size_t block_bytes) {
    if (list.bottom != nullptr) std::abort();
    auto* const blocks = static_cast<char*>(fresh_pages(block_bytes * FreeList::max_blocks));
    list.bottom = static_cast<void**>(fresh_pages(sizeof(void*) * FreeList::max_blocks));
    list.top = list.bottom;
    for (std::size_t i = FreeList::max_blocks; i-- > 0;) *list.top++ = blocks + i * block_bytes;
}

struct Subject {
    static constexpr bool any_size = true;
    static constexpr std::size_t max_blocks = FreeList::max_blocks;
    static void* allocate(std::size_t bytes) {
        const unsigned bucket = bucket_of(bytes);
        FreeList& list = lists[bucket];
        if (list.top == list.bottom) [[unlikely]]
            fill(list, std::size_t{64} << bucket);
        ++list.allocations;
        return *--list.top;
    }
    static void deallocate(void* p, std::size_t bytes) noexcept {
        FreeList& list = lists[bucket_of(bytes)];
        ++list.deallocations;
        *list.top++ = p;
    }

private:
    static unsigned bucket_of(std::size_t bytes) noexcept {
        return static_cast<unsigned>(std::bit_width((bytes - 1) | 63U)) - 6U;
    }
    static inline constinit thread_local FreeList lists[11] = {};
};
static_assert(AnswersQuestions<Subject>);

}  // namespace perf
