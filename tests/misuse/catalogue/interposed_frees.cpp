// Wrong frees, reallocations and queries through malloc's family and the operators, which the
// interposer serves. The next allocator here is the C library's, which ends the program too.

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <new>

#include <tensorpool/arena.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

constexpr std::align_val_t page{4096};
alignas(64) char static_zeros[4096];
// Zeros before the pointer, which the C library takes for an invalid size.
char* const in_static_memory = static_zeros + 64;

template <std::size_t bytes>
void free_twice() {
    void* const p = std::malloc(bytes);
    std::free(p);
    std::free(hidden(p));
}
void free_twice_with_an_allocation_between() {
    void* const p = std::malloc(small);
    std::free(p);
    void* const other = std::malloc(small);
    std::free(hidden(p));
    std::free(hidden(other));
}
void free_on_two_threads() {
    void* const p = std::malloc(small);
    on_other_thread([p] { std::free(p); });
    std::free(hidden(p));
}
void free_after_realloc() {
    void* const p = std::malloc(small);
    (void)hidden(std::realloc(p, 100 * small));
    std::free(hidden(p));
}
void delete_twice() {
    auto* const p = new int[25];
    delete[] hidden(p);
    delete[] hidden(p);
}
void free_deleted() {
    auto* const p = new int[25];
    delete[] hidden(p);
    std::free(hidden(p));
}
template <std::size_t bytes, std::ptrdiff_t offset>
void free_interior() {
    std::free(plus(std::malloc(bytes), offset));
}
void delete_interior() {
    ::operator delete(plus(::operator new(1000), 16));
}
void free_aligned_interior() {
    std::free(plus(std::aligned_alloc(4096, 8192), 4096));
}
void free_stack() {
    alignas(64) char mine[128] = {};
    std::free(plus(mine, 64));
}
template <std::uintptr_t address>
void free_address() {
    std::free(hidden(reinterpret_cast<void*>(address)));
}
void free_block_of_a_pool() {
    std::free(hidden(pool().allocate(small)));
}
void free_block_of_an_arena() {
    Arena arena(arena_options("arena"));
    (void)arena.allocate(small);
    // Behind zeros, like `in_static_memory`.
    std::free(hidden(arena.allocate(small, 4096)));
}

void realloc_freed() {
    void* const p = std::malloc(large);
    std::free(p);
    (void)hidden(std::realloc(hidden(p), 2 * large));
}
void realloc_freed_small() {
    void* const p = std::malloc(small);
    std::free(p);
    (void)hidden(std::realloc(hidden(p), 10 * small));
}
void realloc_interior() {
    (void)hidden(std::realloc(plus(std::malloc(1000), 16), 5000));
}
void query_size_of_freed() {
    void* const p = std::malloc(large);
    std::free(p);
    (void)malloc_usable_size(hidden(p));
}
void query_size_of_freed_small() {
    void* const p = std::malloc(small);
    std::free(p);
    (void)malloc_usable_size(hidden(p));
}
void query_size_of_interior() {
    (void)malloc_usable_size(plus(std::malloc(1000), 16));
}

void delete_malloced() {
    ::operator delete(hidden(std::malloc(small)));
}
void free_newed() {
    std::free(hidden(::operator new(small)));
}
void delete_array_as_object() {
    ::operator delete(hidden(::operator new[](small)));
}
void delete_aligned_as_unaligned() {
    ::operator delete(hidden(::operator new(small, page)));
}
void delete_unaligned_as_aligned() {
    ::operator delete(hidden(::operator new(small)), page);
}
void delete_with_a_smaller_size() {
    ::operator delete(hidden(::operator new(1000)), 10);
}
void delete_with_a_larger_size() {
    ::operator delete(hidden(::operator new(small)), 1000);
}

/// Runs `misuse` in a child and ends by the same signal.
void in_child(void (*misuse)(void*), void* p) {
    const pid_t child = fork();
    if (child == 0) {
        misuse(p);
        get_global_memory_pool().trim();
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status)) return;
    std::signal(WTERMSIG(status), SIG_DFL);
    std::raise(WTERMSIG(status));
}
void free_twice_in_child() {
    void* const p = std::malloc(small);
    std::free(p);
    in_child([](void* freed) { std::free(freed); }, hidden(p));
}
void free_interior_in_child() {
    in_child([](void* p) { std::free(p); }, plus(std::malloc(large), 64));
}
void free_static_in_child() {
    in_child([](void* p) { std::free(p); }, hidden(in_static_memory));
}

void calloc_with_overflow() {
    expect_harmless(
        hidden(std::calloc(SIZE_MAX / 2, hidden(in_static_memory) == nullptr ? 1 : 3)) == nullptr);
}
void align_to_3() {
    void* p = nullptr;
    expect_harmless(posix_memalign(&p, 3, small) != 0);
}

// Without checks, a double free of a small block is found when both go home, here at a trim. The
// size of a sized delete is ignored, since it may be wrong where a class has no virtual destructor.
constexpr Case cases[] = {
    {"malloc_double_free", free_twice<small>, always(double_free)},
    {"malloc_double_free_of_24_B", free_twice<24>, always(double_free)},
    {"malloc_double_free_of_300_KiB", free_twice<large>, always(double_free)},
    {"malloc_double_free_with_an_allocation_between", free_twice_with_an_allocation_between,
     always(double_free)},
    {"malloc_double_free_on_two_threads",
     free_on_two_threads,
     {foreign_free, double_free, double_free, double_free, double_free}},
    {"malloc_free_after_realloc", free_after_realloc, always(double_free)},
    {"delete_twice", delete_twice, always(double_free)},
    {"free_after_delete", free_deleted, always(double_free)},
    {"malloc_free_interior", free_interior<1000, 16>, always(interior_free)},
    {"malloc_free_interior_of_300_KiB", free_interior<large, 4096>, always(interior_free)},
    {"malloc_free_interior_of_an_aligned_block", free_aligned_interior, always(interior_free)},
    {"delete_interior", delete_interior, always(interior_free)},
    {"malloc_free_stack", free_stack, always(by_next_allocator)},
    {"malloc_free_static", [] { std::free(hidden(in_static_memory)); }, always(by_next_allocator)},
    {"malloc_free_address_16", free_address<16>, always(by_system)},
    {"malloc_free_a_wild_address", free_address<0x4141414141414140>, always(by_system)},
    {"malloc_free_block_of_a_pool", free_block_of_a_pool, always(wrong_pool)},
    {"malloc_free_block_of_an_arena", free_block_of_an_arena, always(by_next_allocator)},
    {"realloc_freed_300_KiB",
     realloc_freed,
     {double_free, double_free, double_free, access_after_free, invalid_query}},
    {"realloc_freed",
     realloc_freed_small,
     {double_free, double_free, double_free, access_after_free, invalid_query}},
    {"realloc_interior",
     realloc_interior,
     {interior_free, interior_free, interior_free, access_beyond, invalid_query}},
    {"malloc_usable_size_of_freed_300_KiB",
     query_size_of_freed,
     {passes, passes, passes, passes, invalid_query}},
    {"malloc_usable_size_of_freed",
     query_size_of_freed_small,
     {passes, passes, passes, passes, invalid_query}},
    {"malloc_usable_size_of_interior",
     query_size_of_interior,
     {passes, passes, passes, passes, invalid_query}},
    {"delete_of_malloc", delete_malloced, {passes, passes, passes, passes, mismatched_free}},
    {"free_of_new", free_newed, {passes, passes, passes, passes, mismatched_free}},
    {"delete_of_new_array",
     delete_array_as_object,
     {passes, passes, passes, passes, mismatched_free}},
    {"unaligned_delete_of_aligned_new",
     delete_aligned_as_unaligned,
     {passes, passes, passes, passes, wrong_size}},
    {"aligned_delete_of_unaligned_new",
     delete_unaligned_as_aligned,
     {passes, passes, passes, passes, wrong_size}},
    {"sized_delete_with_a_smaller_size",
     delete_with_a_smaller_size,
     {passes, passes, passes, passes, wrong_size}},
    {"sized_delete_with_a_larger_size",
     delete_with_a_larger_size,
     {passes, passes, passes, passes, wrong_size}},
    {"malloc_double_free_in_forked_child", free_twice_in_child, always(double_free)},
    {"malloc_free_interior_in_forked_child", free_interior_in_child, always(interior_free)},
    {"malloc_free_static_in_forked_child", free_static_in_child, always(by_next_allocator)},
    {"calloc_with_overflow", calloc_with_overflow, always(harmless)},
    {"posix_memalign_to_3", align_to_3, always(harmless)},
};

}  // namespace

std::span<const Case> interposed_frees() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
