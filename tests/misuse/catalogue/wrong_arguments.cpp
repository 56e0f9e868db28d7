// Arguments that a call documents as invalid: it throws, or returns that it failed, in every mode.

#include <tensorpool/tensorpool.h>
#include <tensorpool/arena.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/pooled_array.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

void make_pool_with_contradiction() {
    PoolOptions options = pool_options("impossible");
    options.initial_capacity = 2 * mib;
    options.max_capacity = mib;
    const MemoryPool impossible(options);
}
void make_pool_with_guard_share_of_2() {
    PoolOptions options = pool_options("impossible");
    options.guard_share = 2;
    const MemoryPool impossible(options);
}
void make_arena_with_alignment_of_48() {
    ArenaOptions options = arena_options("impossible");
    options.alignment = 48;
    const Arena impossible(options);
}
void allocate_beyond_the_limit() {
    PoolOptions options = pool_options("limited");
    options.max_capacity = mib;
    MemoryPool limited(options);
    (void)limited.allocate(2 * mib);
}
void allocate_from_arena_with_alignment_of_3() {
    Arena arena(arena_options("mine"));
    (void)arena.allocate(small, 3);
}
void allocate_too_much_from_arena() {
    Arena arena(arena_options("mine"));
    (void)arena.allocate(SIZE_MAX);
}
void reallocate_to_too_much() {
    void* const p = pool().allocate(small);
    (void)pool().reallocate(p, small, SIZE_MAX);
}
void destroy_global_in_c() {
    expect_harmless(tensorpool_destroy(tensorpool_global()) == tensorpool_invalid_argument);
}
void init_options_of_a_wrong_size() {
    tensorpool_options options;
    expect_harmless(tensorpool_options_init(&options, 7) == tensorpool_invalid_argument);
}

constexpr Case cases[] = {
    {"allocate_with_alignment_of_3", [] { (void)pool().allocate(small, 3); },
     always(invalid_argument)},
    {"allocate_with_alignment_of_0", [] { (void)pool().allocate(small, 0); },
     always(invalid_argument)},
    {"try_allocate_with_alignment_of_3",
     [] { expect_harmless(pool().try_allocate(small, 3) == nullptr); }, always(harmless)},
    {"allocate_SIZE_MAX", [] { (void)pool().allocate(SIZE_MAX); }, always(bad_alloc)},
    {"allocate_SIZE_MAX_aligned", [] { (void)pool().allocate(SIZE_MAX - 4000, 4096); },
     always(bad_alloc)},
    {"allocate_zeroed_with_overflow", [] { (void)pool().allocate_zeroed(SIZE_MAX / 2, 3); },
     always(bad_alloc)},
    {"allocate_beyond_the_limit", allocate_beyond_the_limit, always(bad_alloc)},
    {"reallocate_to_SIZE_MAX", reallocate_to_too_much, always(bad_alloc)},
    {"reserve_SIZE_MAX", [] { pool().reserve(SIZE_MAX); }, always(bad_alloc)},
    {"handle_with_alignment_of_48", [] { const PooledAllocation handle(pool(), small, 48); },
     always(invalid_argument)},
    {"array_with_overflow", [] { const PooledArray<double> array(pool(), SIZE_MAX / 4); },
     always(bad_alloc)},
    {"pool_with_contradicting_capacities", make_pool_with_contradiction, always(invalid_argument)},
    {"pool_with_guard_share_of_2", make_pool_with_guard_share_of_2, always(invalid_argument)},
    {"arena_with_alignment_of_48", make_arena_with_alignment_of_48, always(invalid_argument)},
    {"arena_allocate_with_alignment_of_3", allocate_from_arena_with_alignment_of_3,
     always(invalid_argument)},
    {"arena_allocate_SIZE_MAX", allocate_too_much_from_arena, always(bad_alloc)},
    {"context_with_alignment_of_3", [] { const Context impossible(mib, 3); },
     always(invalid_argument)},
    {"allocate_in_c_without_pool",
     [] { expect_harmless(tensorpool_allocate(nullptr, small) == nullptr); }, always(harmless)},
    {"allocate_in_c_with_alignment_of_3",
     [] { expect_harmless(tensorpool_allocate_aligned(tensorpool_global(), 1, 3) == nullptr); },
     always(harmless)},
    {"destroy_the_global_pool_in_c", destroy_global_in_c, always(harmless)},
    {"options_in_c_of_a_wrong_size", init_options_of_a_wrong_size, always(harmless)},
};

}  // namespace

std::span<const Case> wrong_arguments() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
