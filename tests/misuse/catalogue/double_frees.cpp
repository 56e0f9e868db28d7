// Blocks that are freed twice. Without checks, the second free of a small block is found when both
// go home, here at a trim. If the block's memory has left its bucket by then, the second free is
// that of a foreign pointer.

#include <memory>

#include <tensorpool/tensorpool.h>
#include <tensorpool/allocator.hpp>
#include <tensorpool/memory_resource.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/pooled_pointer.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

template <std::size_t bytes>
void free_twice_sized() {
    void* const p = pool().allocate(bytes);
    pool().deallocate(p, bytes);
    pool().deallocate(hidden(p), bytes);
}
template <std::size_t bytes>
void free_twice() {
    void* const p = pool().allocate(bytes);
    pool().deallocate(p);
    pool().deallocate(hidden(p));
}
template <std::size_t bytes>
void free_on_two_threads() {
    void* const p = pool().allocate(bytes);
    on_other_thread([p] { pool().deallocate(p, bytes); });
    pool().deallocate(hidden(p), bytes);
}
template <std::size_t bytes>
void free_after_reallocate() {
    void* const p = pool().allocate(bytes);
    (void)pool().allocate(bytes);
    (void)pool().reallocate(p, bytes, 4 * bytes);
    pool().deallocate(hidden(p));
}
template <std::size_t bytes>
void free_after_trim() {
    void* const p = pool().allocate(bytes);
    pool().deallocate(p, bytes);
    pool().trim();
    pool().deallocate(hidden(p), bytes);
}

// The block may serve the allocation in between; its own free is then the second one.
void free_with_an_allocation_between() {
    void* const p = pool().allocate(small);
    pool().deallocate(p);
    void* const other = pool().allocate(small);
    pool().deallocate(hidden(p));
    pool().deallocate(other);
}
void free_large_with_an_allocation_between() {
    void* const p = pool().allocate(large);
    pool().deallocate(p);
    void* const other = pool().allocate(large);
    pool().deallocate(hidden(p));
    pool().deallocate(other);
}
void free_many_times() {
    void* const p = pool().allocate(small);
    for (unsigned i = 0; i != 1000; ++i) pool().deallocate(hidden(p), small);
}
void free_the_block_of_a_handle() {
    const PooledAllocation handle(pool(), small);
    pool().deallocate(hidden(handle.get()), small);
}
void free_twice_after_release() {
    PooledAllocation handle(pool(), small);
    void* const p = handle.release();
    pool().deallocate(p);
    pool().deallocate(hidden(p));
}
void end_one_block_by_two_handles() {
    const HeldBlock block = PooledAllocation(pool(), large).detach();
    PooledAllocation first(block);
    PooledAllocation second(block);
}
void free_aligned_twice() {
    void* const p = pool().allocate(small, 4096);
    pool().deallocate(p, small, 4096);
    pool().deallocate(hidden(p), small, 4096);
}
void free_zeroed_twice() {
    void* const p = pool().allocate_zeroed(10, 1000);
    pool().deallocate(p);
    pool().deallocate(hidden(p));
}
void free_twice_in_c() {
    void* const p = tensorpool_allocate(tensorpool_global(), small);
    tensorpool_deallocate(tensorpool_global(), p);
    tensorpool_deallocate(tensorpool_global(), hidden(p));
}
void free_twice_by_an_allocator() {
    Allocator<int> allocator(pool());
    int* const p = allocator.allocate(100);
    allocator.deallocate(p, 100);
    allocator.deallocate(hidden(p), 100);
}
void free_twice_by_a_memory_resource() {
    PoolResource resource(pool());
    void* const p = resource.allocate(5000);
    resource.deallocate(p, 5000);
    resource.deallocate(hidden(p), 5000);
}
void delete_twice_by_a_unique_pointer() {
    auto owner = make_pooled_unique<int>(1);
    get_global_memory_pool().deallocate(hidden(owner.get()));
}

constexpr Case cases[] = {
    {"double_free_of_64_B", free_twice<64>, always(double_free)},
    {"double_free_of_100_B_with_its_size", free_twice_sized<small>, always(double_free)},
    {"double_free_of_20_KiB_with_its_size", free_twice_sized<20 * kib>, always(double_free)},
    {"double_free_of_64_KiB", free_twice<64 * kib>, always(double_free)},
    {"double_free_of_300_KiB", free_twice<large>, always(double_free)},
    {"double_free_of_300_KiB_with_its_size", free_twice_sized<large>, always(double_free)},
    {"double_free_of_5_MiB", free_twice<5 * mib>, always(double_free)},
    {"double_free_on_two_threads",
     free_on_two_threads<small>,
     {foreign_free, double_free, double_free, double_free, double_free}},
    {"double_free_on_two_threads_large", free_on_two_threads<large>, always(double_free)},
    {"free_after_reallocate", free_after_reallocate<small>, always(double_free)},
    {"free_after_reallocate_large", free_after_reallocate<large>, always(double_free)},
    {"double_free_after_trim",
     free_after_trim<small>,
     {foreign_free, foreign_free, foreign_free, double_free, foreign_free}},
    {"double_free_after_trim_large",
     free_after_trim<large>,
     {foreign_free, foreign_free, foreign_free, double_free, foreign_free}},
    {"double_free_with_an_allocation_between", free_with_an_allocation_between,
     always(double_free)},
    {"double_free_with_an_allocation_between_large", free_large_with_an_allocation_between,
     always(double_free)},
    {"free_1000_times", free_many_times, always(double_free)},
    {"free_of_a_handles_block", free_the_block_of_a_handle, always(double_free)},
    {"double_free_after_a_handles_release", free_twice_after_release, always(double_free)},
    {"one_block_in_two_handles", end_one_block_by_two_handles, always(double_free)},
    {"double_free_of_an_aligned_block", free_aligned_twice, always(double_free)},
    {"double_free_of_a_zeroed_block", free_zeroed_twice, always(double_free)},
    {"double_free_in_c", free_twice_in_c, always(double_free)},
    {"double_free_by_an_allocator", free_twice_by_an_allocator, always(double_free)},
    {"double_free_by_a_memory_resource", free_twice_by_a_memory_resource, always(double_free)},
    {"double_free_by_a_unique_pointer", delete_twice_by_a_unique_pointer, always(double_free)},
};

}  // namespace

std::span<const Case> double_frees() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
