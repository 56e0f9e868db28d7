// Mappings that others make between the pool's memory belong to the next allocator, also when they
// are freed.

#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>

#include "interpose/interposed.hpp"

using namespace tensorpool::testing;
using std::size_t;

namespace {

constexpr size_t mib = size_t{1} << 20;

/// Maps a large block as the C library does: with its size and a flag in front of it.
void* as_malloc_maps_it(std::uintptr_t at, size_t bytes) {
    void* const memory = mmap(reinterpret_cast<void*>(at), bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (memory != reinterpret_cast<void*>(at)) return nullptr;
    auto* const words = static_cast<size_t*>(memory);
    words[0] = 0;
    words[1] = bytes | 2;  // IS_MMAPPED
    return words + 2;
}

/// Returns the first address from `from` up, in steps of a granule, where nothing is mapped.
std::uintptr_t free_from(std::uintptr_t from) {
    for (;; from += 2 * mib) {
        void* const p = mmap(reinterpret_cast<void*>(from), 2 * mib, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return 0;
        munmap(p, 2 * mib);
        if (p == reinterpret_cast<void*>(from)) return from;
    }
}

void try_planted() {
    void* const first = std::malloc(mib);
    expect(is_of_pool(first), "a block of the pool");
    const std::uintptr_t at =
        free_from(reinterpret_cast<std::uintptr_t>(first) / (2 * mib) * (2 * mib));
    void* const planted = as_malloc_maps_it(at, mib);
    expect(planted != nullptr, "a mapping between the pool's memory");
    // The pool avoids the mapping, which then lies between the pool's addresses.
    void* const around = std::malloc(300 * mib);
    expect(around != nullptr && is_of_pool(around), "a pool block beyond the mapping");
    expect(is_of_pool(planted), "the mapping within the pool's range");
    expect(malloc_usable_size(planted) >= mib - 64, "the size that the next allocator reports",
           malloc_usable_size(planted));
    std::memset(planted, 7, 100);
    auto* const moved = static_cast<char*>(std::realloc(hidden(planted), 3 * mib));
    expect(moved != nullptr && moved[99] == 7, "reallocation with the content kept");
    std::free(moved);
    void* const again = as_malloc_maps_it(at, mib);
    expect(again != nullptr, "the old mapping unmapped");
    std::free(again);
    std::free(around);
    std::free(first);
}

int handled = 0;
void handle() {
    ++handled;
    std::set_new_handler(nullptr);
}

// Memory that the pool reserved before the limit was lowered may still serve, but nothing beyond
// the limit.
void try_lowered_limit() {
    std::ifstream statm("/proc/self/statm");
    size_t pages = 0;
    statm >> pages;
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    const rlimit before = limit;
    limit.rlim_cur = pages * 4096 + 16 * mib;
    expect(setrlimit(RLIMIT_AS, &limit) == 0, "a lowered limit");
    std::set_new_handler(handle);
    bool thrown = false;
    try {
        ::operator delete(hidden(::operator new(4096 * mib)));
    } catch (const std::bad_alloc&) {
        thrown = true;
    }
    expect(thrown && handled == 1, "a call of the handler, then bad_alloc");
    expect(setrlimit(RLIMIT_AS, &before) == 0, "the restored limit");
    void* const p = std::malloc(64 * mib);
    expect(p != nullptr && is_of_pool(p), "a block of the pool again");
    std::free(p);
}

}  // namespace

int main() {
    expect_interposed();
    const bool next_is_glibc = !maps_have("libjemalloc");
    if (next_is_glibc) try_planted();
    try_lowered_limit();
    return failures == 0 ? 0 : 1;
}
