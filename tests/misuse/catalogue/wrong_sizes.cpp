// Frees and reallocations with a size or an alignment that the block does not have.

#include <tensorpool/tensorpool.h>
#include <tensorpool/allocator.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/memory_resource.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

template <std::size_t bytes, std::size_t stated>
void free_as() {
    pool().deallocate(pool().allocate(bytes), stated);
}
template <std::size_t bytes, std::size_t stated>
void reallocate_as() {
    (void)pool().reallocate(pool().allocate(bytes), stated, 16 * bytes);
}
void free_aligned_as_unaligned() {
    pool().deallocate(pool().allocate(small, 4096), small);
}
void free_unaligned_as_aligned() {
    pool().deallocate(pool().allocate(small), small, 4096);
}
void free_in_c_with_a_wrong_size() {
    void* const p = tensorpool_allocate(tensorpool_global(), small);
    tensorpool_deallocate_sized(tensorpool_global(), p, 1000);
}
void free_by_an_allocator_with_a_wrong_count() {
    Allocator<int> allocator(pool());
    allocator.deallocate(allocator.allocate(100), 1000);
}
void free_by_a_memory_resource_with_a_wrong_size() {
    PoolResource resource(pool());
    resource.deallocate(resource.allocate(large), small);
}
void free_by_a_context_with_a_wrong_size() {
    ContextOptions options;
    options.pool = &pool();
    Context context(options);
    context.deallocate(context.allocate(small), 1000);
}

// Without checks, a wrong size of a small block puts it among those of another bucket, where it is
// found when it goes home.
constexpr Case cases[] = {
    {"free_100_B_as_10_B",
     free_as<100, 10>,
     {foreign_free, wrong_size, wrong_size, wrong_size, wrong_size}},
    {"free_100_B_as_1000_B",
     free_as<100, 1000>,
     {foreign_free, wrong_size, wrong_size, wrong_size, wrong_size}},
    {"free_100_B_as_129_B",
     free_as<100, 129>,
     {foreign_free, wrong_size, wrong_size, wrong_size, wrong_size}},
    {"free_100_B_as_99_B", free_as<100, 99>, {passes, passes, wrong_size, passes, wrong_size}},
    {"free_100_B_as_101_B", free_as<100, 101>, {passes, passes, passes, passes, wrong_size}},
    {"free_40_KiB_as_33_KiB",
     free_as<40 * kib, 33 * kib>,
     {passes, passes, wrong_size, passes, wrong_size}},
    {"free_100_B_as_100_KiB", free_as<100, 100 * kib>, always(wrong_size)},
    {"free_64_KiB_as_65_KiB", free_as<64 * kib, 65 * kib>, always(wrong_size)},
    {"free_300_KiB_as_100_B", free_as<large, 100>, always(wrong_size)},
    {"free_300_KiB_as_200_KiB",
     free_as<large, 200 * kib>,
     {passes, passes, wrong_size, passes, wrong_size}},
    {"free_300_KiB_as_1_B_less",
     free_as<large, large - 1>,
     {passes, passes, wrong_size, passes, wrong_size}},
    {"free_300_KiB_as_400_KiB",
     free_as<large, 400 * kib>,
     {passes, wrong_size, wrong_size, passes, wrong_size}},
    {"free_100_B_as_SIZE_MAX", free_as<100, SIZE_MAX>, always(wrong_size)},
    {"free_aligned_block_as_unaligned",
     free_aligned_as_unaligned,
     {wrong_size, wrong_size, wrong_size, passes, wrong_size}},
    {"free_unaligned_block_as_aligned",
     free_unaligned_as_aligned,
     {passes, wrong_size, wrong_size, passes, wrong_size}},
    {"free_in_c_with_a_wrong_size",
     free_in_c_with_a_wrong_size,
     {foreign_free, wrong_size, wrong_size, wrong_size, wrong_size}},
    {"free_by_an_allocator_with_a_wrong_count",
     free_by_an_allocator_with_a_wrong_count,
     {foreign_free, wrong_size, wrong_size, wrong_size, wrong_size}},
    {"free_by_a_memory_resource_with_a_wrong_size", free_by_a_memory_resource_with_a_wrong_size,
     always(wrong_size)},
    {"free_by_a_context_with_a_wrong_size",
     free_by_a_context_with_a_wrong_size,
     {foreign_free, wrong_size, wrong_size, wrong_size, wrong_size}},
    {"reallocate_100_B_as_1000_B", reallocate_as<100, 1000>, always(wrong_size)},
    {"reallocate_300_KiB_as_1_MiB", reallocate_as<large, mib>, always(wrong_size)},
    {"reallocate_100_B_as_101_B",
     reallocate_as<100, 101>,
     {passes, passes, passes, wrong_size, wrong_size}},
};

}  // namespace

std::span<const Case> wrong_sizes() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
