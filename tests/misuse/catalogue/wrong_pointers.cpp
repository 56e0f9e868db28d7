// Frees, reallocations and queries of pointers that are no blocks of the pool.

#include <sys/mman.h>

#include <cstdlib>

#include <tensorpool/tensorpool.h>
#include <tensorpool/arena.hpp>
#include <tensorpool/scratch.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

alignas(64) char in_static_memory[4096];

void* at(std::uintptr_t address) noexcept {
    return hidden(reinterpret_cast<void*>(address));
}
template <std::size_t bytes, std::ptrdiff_t offset>
void free_interior() {
    pool().deallocate(plus(pool().allocate(bytes), offset));
}
template <std::size_t bytes, std::ptrdiff_t offset>
void free_interior_sized() {
    pool().deallocate(plus(pool().allocate(bytes), offset), bytes);
}
template <std::uintptr_t address>
void free_address() {
    pool().deallocate(at(address));
}
void free_stack() {
    alignas(64) char mine[128];
    pool().deallocate(hidden(mine));
}
void free_stack_sized() {
    alignas(64) char mine[128];
    pool().deallocate(hidden(mine), small);
}
void free_block_of_malloc() {
    pool().deallocate(hidden(std::malloc(small)));
}
void free_code() {
    pool().deallocate(hidden(reinterpret_cast<void*>(&free_stack)));
}
void free_mapping() {
    pool().deallocate(hidden(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
}
void free_unused_address_of_the_pool() {
    pool().deallocate(plus(pool().allocate(small), 1024 * mib));
}
template <std::size_t bytes>
void free_in_wrong_pool() {
    pool().deallocate(hidden(other_pool().allocate(bytes)));
}
template <std::size_t bytes>
void free_in_wrong_pool_sized() {
    pool().deallocate(hidden(other_pool().allocate(bytes)), bytes);
}
void free_block_of_an_arena() {
    Arena arena(arena_options("arena"));
    pool().deallocate(hidden(arena.allocate(small)));
}
void free_block_of_a_scratch() {
    pool().deallocate(hidden(Scratch::local().allocate(small)));
}
void free_foreign_in_c() {
    tensorpool_deallocate(tensorpool_global(), hidden(in_static_memory));
}

void reallocate_stack() {
    alignas(64) char mine[128];
    (void)pool().reallocate(hidden(mine), small, 1000);
}
template <std::size_t bytes>
void reallocate_interior() {
    (void)pool().reallocate(plus(pool().allocate(bytes), 64), bytes, 2 * bytes);
}
template <std::size_t bytes>
void reallocate_freed() {
    void* const p = pool().allocate(bytes);
    pool().deallocate(p);
    (void)pool().reallocate(hidden(p), bytes, 2 * bytes);
}
void reallocate_to_nothing_twice() {
    void* const p = pool().allocate(large);
    (void)pool().reallocate(p, large, 0);
    (void)pool().reallocate(hidden(p), large, 0);
}
void reallocate_of_other_pool() {
    (void)pool().reallocate(hidden(other_pool().allocate(small)), small, 1000);
}

void query_size_of_static() {
    expect_harmless(pool().usable_size(hidden(in_static_memory)) == 0);
}
void query_size_of_interior() {
    expect_harmless(pool().usable_size(plus(pool().allocate(large), 64)) == 0);
}
void query_size_of_freed() {
    void* const p = pool().allocate(large);
    pool().deallocate(p);
    expect_harmless(pool().usable_size(hidden(p)) == 0 && !pool().owns(hidden(p)));
}
void query_size_of_other_pool() {
    expect_harmless(pool().usable_size(hidden(other_pool().allocate(small))) == 0);
}

constexpr Case cases[] = {
    {"free_8_B_into_a_block", free_interior<small, 8>, always(interior_free)},
    {"free_64_B_into_a_block_of_1000_B", free_interior<1000, 64>, always(interior_free)},
    {"free_the_last_byte_of_a_block", free_interior<small, small - 1>, always(interior_free)},
    {"free_one_page_into_300_KiB", free_interior<large, 4096>, always(interior_free)},
    {"free_8_B_into_300_KiB_with_its_size", free_interior_sized<large, 8>, always(interior_free)},
    {"free_64_B_into_a_block_with_its_size",
     free_interior_sized<small, 64>,
     {foreign_free, interior_free, interior_free, interior_free, interior_free}},
    {"free_stack", free_stack, always(foreign_free)},
    {"free_stack_with_a_size", free_stack_sized, always(foreign_free)},
    {"free_static", [] { pool().deallocate(hidden(in_static_memory)); }, always(foreign_free)},
    {"free_block_of_malloc", free_block_of_malloc, always(foreign_free)},
    {"free_code", free_code, always(foreign_free)},
    {"free_address_16", free_address<16>, always(foreign_free)},
    {"free_a_wild_address", free_address<0x4141414141414140>, always(foreign_free)},
    {"free_the_last_address", free_address<UINTPTR_MAX>, always(foreign_free)},
    {"free_inaccessible_mapping", free_mapping, always(foreign_free)},
    {"free_unused_address_of_the_pool", free_unused_address_of_the_pool, always(foreign_free)},
    {"free_in_wrong_pool", free_in_wrong_pool<small>, always(wrong_pool)},
    {"free_in_wrong_pool_large", free_in_wrong_pool<large>, always(wrong_pool)},
    {"free_in_wrong_pool_with_its_size", free_in_wrong_pool_sized<small>, always(wrong_pool)},
    {"free_in_wrong_pool_large_with_its_size", free_in_wrong_pool_sized<large>, always(wrong_pool)},
    {"free_block_of_an_arena", free_block_of_an_arena, always(foreign_free)},
    {"free_block_of_a_scratch", free_block_of_a_scratch, always(foreign_free)},
    {"free_foreign_in_c", free_foreign_in_c, always(foreign_free)},
    {"reallocate_stack", reallocate_stack, always(foreign_free)},
    {"reallocate_interior", reallocate_interior<1000>, always(interior_free)},
    {"reallocate_interior_large", reallocate_interior<large>, always(interior_free)},
    {"reallocate_freed", reallocate_freed<small>, always(double_free)},
    {"reallocate_freed_large", reallocate_freed<large>, always(double_free)},
    {"reallocate_to_nothing_twice", reallocate_to_nothing_twice, always(double_free)},
    {"reallocate_of_other_pool", reallocate_of_other_pool, always(wrong_pool)},
    {"usable_size_of_static", query_size_of_static, always(harmless)},
    {"usable_size_of_interior", query_size_of_interior, always(harmless)},
    {"usable_size_of_freed", query_size_of_freed, always(harmless)},
    {"usable_size_of_other_pool", query_size_of_other_pool, always(harmless)},
};

}  // namespace

std::span<const Case> wrong_pointers() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
