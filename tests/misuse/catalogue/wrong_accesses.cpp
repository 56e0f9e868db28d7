// Reads and writes outside of blocks and after their frees.

#include <algorithm>
#include <vector>

#include <tensorpool/tensorpool.h>
#include <tensorpool/allocator.hpp>
#include <tensorpool/pooled_array.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

/// Writes `count` bytes behind a block and frees it.
template <std::size_t bytes, std::size_t count>
void write_behind() {
    void* const p = pool().allocate(bytes);
    write_range(p, bytes, bytes + count);
    pool().deallocate(p, bytes);
}
template <std::size_t bytes, std::ptrdiff_t offset>
void write_far_behind() {
    void* const p = pool().allocate(bytes);
    write(p, bytes + offset);
    pool().deallocate(p, bytes);
}
template <std::size_t bytes, std::ptrdiff_t offset>
void read_behind() {
    void* const p = pool().allocate(bytes);
    (void)read(p, bytes + offset);
    pool().deallocate(p, bytes);
}
/// Writes `count` bytes before a block that follows another one, and frees all.
template <std::size_t count>
void write_before_small() {
    std::vector<void*> blocks(1000);
    for (void*& p : blocks) p = pool().allocate(small);
    std::sort(blocks.begin(), blocks.end());
    const auto second = std::adjacent_find(
        blocks.begin(), blocks.end(), [](void* p, void* next) { return plus(p, 128) == next; });
    void* const p = second == blocks.end() ? blocks[0] : second[1];
    write_range(p, -static_cast<std::ptrdiff_t>(count), 0);
    for (void* const block : blocks) pool().deallocate(block, small);
}
template <std::size_t bytes, std::ptrdiff_t offset>
void write_before() {
    (void)pool().allocate(bytes);
    void* const p = pool().allocate(bytes);
    write(p, -offset);
    pool().deallocate(p, bytes);
}

/// Returns a freed block. Its neighbour stays in use, so that its span stays in its bucket.
template <std::size_t bytes>
void* freed() {
    (void)pool().allocate(bytes);
    void* const p = pool().allocate(bytes);
    write(p, bytes / 2);
    pool().deallocate(p, bytes);
    return hidden(p);
}
template <std::size_t bytes, std::size_t offset>
void write_freed() {
    void* const p = freed<bytes>();
    write(p, offset);
    reuse_blocks(bytes);
}
// All blocks of its span are free then, so the span leaves the bucket.
void write_freed_in_a_free_span() {
    void* const p = pool().allocate(20 * kib);
    pool().deallocate(p);
    write(hidden(p), 10 * kib);
    reuse_blocks(20 * kib);
}
template <std::size_t bytes>
void read_freed() {
    (void)read(freed<bytes>(), bytes / 2);
}
void read_freed_small() {
    // The content is gone.
    expect_harmless(read(freed<small>(), small / 2) == 0);
}
template <std::size_t bytes>
void write_moved() {
    void* const p = pool().allocate(bytes);
    (void)pool().allocate(bytes);
    (void)pool().reallocate(p, bytes, 4 * bytes);
    write(hidden(p), 0);
    reuse_blocks(bytes);
}
void read_moved_large() {
    void* const p = pool().allocate(large);
    (void)pool().allocate(large);
    (void)pool().reallocate(p, large, 4 * large);
    (void)read(hidden(p), 0);
}
void write_what_a_reallocation_cut_off() {
    void* const p = pool().reallocate(pool().allocate(small), small, small - 20);
    write(p, small - 10);
    pool().deallocate(p, small - 20);
}
void write_behind_an_aligned_block() {
    void* const p = pool().allocate(small, 4096);
    write(p, small);
    pool().deallocate(p, small, 4096);
}
void write_behind_a_zeroed_block() {
    void* const p = pool().allocate_zeroed(small, 1);
    write(p, small);
    pool().deallocate(p);
}
void write_behind_an_array() {
    PooledArray<float> array(pool(), 25);
    write(array.data(), 25 * sizeof(float));
}
void write_behind_a_vector() {
    std::vector<int, Allocator<int>> vector(25, 1, Allocator<int>(pool()));
    write(vector.data(), 25 * sizeof(int));
}
void write_behind_a_block_in_c() {
    void* const p = tensorpool_allocate(tensorpool_global(), small);
    write(p, small);
    tensorpool_deallocate(tensorpool_global(), p);
}
void write_freed_on_other_thread() {
    void* const p = pool().allocate(large);
    on_other_thread([p] { pool().deallocate(p, large); });
    write(hidden(p), 0);
}

constexpr Case cases[] = {
    {"write_1_B_behind_1_B", write_behind<1, 1>, protected_by(overrun, overrun)},
    {"write_1_B_behind_24_B", write_behind<24, 1>, protected_by(overrun, overrun)},
    {"write_1_B_behind_64_B", write_behind<64, 1>, protected_by(access_beyond, overrun)},
    {"write_1_B_behind_100_B", write_behind<100, 1>, protected_by(overrun, overrun)},
    {"write_1_B_behind_1000_B", write_behind<1000, 1>, protected_by(overrun, overrun)},
    {"write_1_B_behind_4096_B", write_behind<4096, 1>, protected_by(access_beyond, overrun)},
    {"write_1_B_behind_20_KiB", write_behind<20 * kib, 1>, protected_by(access_beyond, overrun)},
    {"write_1_B_behind_64_KiB", write_behind<64 * kib, 1>, protected_by(access_beyond, overrun)},
    {"write_1_B_behind_300_KiB", write_behind<large, 1>, protected_by(access_beyond, overrun)},
    {"write_1_B_behind_5000001_B", write_behind<5'000'001, 1>, protected_by(overrun, overrun)},
    {"write_8_B_behind_100_B", write_behind<100, 8>, protected_by(overrun, overrun)},
    {"write_8_B_behind_300_KiB", write_behind<large, 8>, protected_by(access_beyond, overrun)},
    // The block may be the last one before the end of its span.
    {"write_a_page_behind_100_B", write_behind<100, 4096>,
     protected_by(access_beyond, "overrun or access-beyond")},
    {"write_a_page_behind_20_KiB", write_behind<20 * kib, 4096>,
     protected_by(access_beyond, overrun)},
    {"write_a_page_behind_300_KiB", write_behind<large, 4096>,
     protected_by(access_beyond, overrun)},
    {"write_64_B_beyond_300_KiB", write_far_behind<large, 64>,
     protected_by(access_beyond, overrun)},
    {"write_a_page_beyond_300_KiB", write_far_behind<large, 4096>,
     protected_by(by_system, access_beyond)},
    {"read_a_page_beyond_300_KiB", read_behind<large, 4096>,
     protected_by(by_system, access_beyond)},
    {"write_1_B_before_100_B", write_before_small<1>, protected_by(overrun, overrun)},
    {"write_8_B_before_100_B", write_before_small<8>, protected_by(overrun, overrun)},
    {"write_1_B_before_300_KiB", write_before<large, 1>,
     protected_by(access_beyond, access_beyond)},
    {"write_a_page_before_300_KiB", write_before<large, 4096>,
     protected_by(access_beyond, access_beyond)},
    {"write_the_first_byte_of_a_freed_block", write_freed<small, 0>,
     protected_by(access_after_free, write_after_free)},
    {"write_the_middle_of_a_freed_block", write_freed<small, 50>,
     protected_by(access_after_free, write_after_free)},
    {"write_the_slack_of_a_freed_block", write_freed<small, 127>,
     protected_by(access_after_free, write_after_free)},
    {"write_a_freed_block_of_20_KiB", write_freed<20 * kib, 10 * kib>,
     protected_by(access_after_free, write_after_free)},
    {"write_a_freed_block_of_a_free_span", write_freed_in_a_free_span,
     protected_by(access_after_free, write_after_free)},
    {"write_a_freed_block_of_300_KiB", write_freed<large, 0>,
     protected_by(access_after_free, access_after_free)},
    {"write_a_freed_block_of_5_MiB", write_freed<5 * mib, mib>,
     protected_by(access_after_free, access_after_free)},
    {"write_a_block_that_another_thread_freed", write_freed_on_other_thread,
     protected_by(access_after_free, access_after_free)},
    {"read_a_freed_block", read_freed_small, protected_by(access_after_free, harmless)},
    {"read_a_freed_block_of_300_KiB", read_freed<large>,
     protected_by(access_after_free, access_after_free)},
    {"read_a_freed_block_of_5_MiB", read_freed<5 * mib>,
     protected_by(access_after_free, access_after_free)},
    {"write_where_a_reallocation_moved_from", write_moved<small>,
     protected_by(access_after_free, write_after_free)},
    {"write_where_a_reallocation_moved_from_large", write_moved<large>,
     protected_by(access_after_free, access_after_free)},
    {"read_where_a_reallocation_moved_from_large", read_moved_large,
     protected_by(access_after_free, access_after_free)},
    {"write_what_a_reallocation_cut_off", write_what_a_reallocation_cut_off,
     protected_by(overrun, overrun)},
    {"write_behind_an_aligned_block", write_behind_an_aligned_block,
     protected_by(overrun, overrun)},
    {"write_behind_a_zeroed_block", write_behind_a_zeroed_block, protected_by(overrun, overrun)},
    {"write_behind_an_array", write_behind_an_array, protected_by(overrun, overrun)},
    {"write_behind_a_vector", write_behind_a_vector, protected_by(overrun, overrun)},
    {"write_behind_a_block_in_c", write_behind_a_block_in_c, protected_by(overrun, overrun)},
};

}  // namespace

std::span<const Case> wrong_accesses() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
