#include <cstring>
#include <thread>

#include <tensorpool/memory_pool.hpp>

#include "memtools/planted_bug.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t small = 100;  // lies in a block of 128 bytes
constexpr std::size_t large = 100'000;

MemoryPool& pool() {
    return get_global_memory_pool();
}
void* filled(std::size_t bytes) {
    return std::memset(pool().allocate(bytes), 1, bytes);
}
void* freed(std::size_t bytes) {
    void* const p = filled(bytes);
    pool().deallocate(p, bytes);
    return p;
}
// The block before it exists, so that its last bytes are a red zone.
void* second_block() {
    (void)filled(small);
    return filled(small);
}

void free_twice_on_two_threads() {
    void* const p = filled(small);
    std::thread([p] { pool().deallocate(p, small); }).join();
    void* const other = filled(small);
    pool().deallocate(p, small);
    (void)other;
}

// Not inlined, so that the tools' own versions are called.
void* (*volatile copy)(void*, const void*, std::size_t) = std::memcpy;

void copy_over_the_end() {
    static char text[small + 8] = {};
    copy(filled(small), text, sizeof text);
}
void copy_from_behind() {
    char text[small + 8];
    copy(text, filled(small), small + 8);
    read(text, small);
}

void find_end_of_unterminated() {
    char* const text = static_cast<char*>(std::memset(filled(small), 'x', small));
    std::size_t (*volatile length)(const char*) = std::strlen;
    if (length(text) == 7) std::fputs("seven\n", stdout);
}

void read_middle_of_half_written() {
    void* const p = std::memset(pool().allocate(small), 1, small / 2);
    read(p, small / 2);
}
void read_reused() {
    (void)freed(small);
    read(pool().allocate(small), 0);
}

void* grown(void* p) {
    return pool().reallocate(p, small, 1000);
}
void read_before_growth() {
    void* const p = filled(small);
    (void)grown(p);
    read(p, 0);
}
void write_before_growth() {
    void* const p = filled(small);
    (void)grown(p);
    write(p, 0);
}
void write_cut_off_part() {
    void* const p = pool().reallocate(filled(small), small, small - 20);
    write(p, small - 10);
}
void read_growth() {
    read(pool().reallocate(filled(small), small, small + 20), small + 10);
}
void read_large_growth() {
    read(pool().reallocate(filled(large), large, 2 * large), large + 10);
}

void write_behind_aligned() {
    write(pool().allocate(large, 4096), large);
}
void write_freed_after_trim() {
    void* const keeps_the_span = filled(small);
    void* const p = freed(small);
    pool().trim();
    write(p, 0);
    (void)keeps_the_span;
}
void free_freed_large() {
    pool().deallocate(freed(large), large);
}

constexpr PlantedBug bugs[] = {
    bad_read("read behind the requested bytes", [] { read(filled(small), small); }),
    bad_write("write behind the requested bytes", [] { write(filled(small), small); }),
    bad_write("write the last byte of the slack", [] { write(filled(small), 127); }),
    bad_read("read before a block", [] { read(second_block(), -1); }),
    bad_write("write before a block", [] { write(second_block(), -1); }),
    bad_read("read a freed block", [] { read(freed(small), 50); }),
    bad_write("write a freed block", [] { write(freed(small), 50); }),
    bad_write("write a freed block after trim", write_freed_after_trim),
    bad_write("memset of a freed block", [] { std::memset(freed(small), 0, small); }),
    bad_write("memcpy beyond the requested bytes", copy_over_the_end),
    bad_read("memcpy from behind the requested bytes", copy_from_behind),
    bad_read("strlen of an unterminated text", find_end_of_unterminated),
    {"free twice, with the size", [] { pool().deallocate(freed(small), small); }, pool_double_free,
     pool_double_free, memcheck_free},
    {"free twice, without the size", [] { pool().deallocate(freed(small)); }, pool_double_free,
     pool_double_free, memcheck_free},
    {"free twice, on two threads", free_twice_on_two_threads, pool_double_free, nullptr,
     memcheck_free},
    {"free with the size of another bucket", [] { pool().deallocate(filled(small), 1000); },
     pool_wrong_size, pool_wrong_size, pool_wrong_size},
    undefined("read a fresh block", [] { read(pool().allocate(small), 0); }),
    undefined("read a reused block", read_reused),
    undefined("read beyond what was written", read_middle_of_half_written),
    bad_read("read behind a zeroed block", [] { read(pool().allocate_zeroed(1, small), small); }),
    bad_read("read the old block after a growth", read_before_growth),
    bad_write("write the old block after a growth", write_before_growth),
    bad_write("write what a reallocation cut off", write_cut_off_part),
    undefined("read what a reallocation added", read_growth),
    bad_write("write behind a large block", [] { write(filled(large), large); }),
    bad_read("read a freed large block", [] { read(freed(large), 50'000); }),
    bad_write("write a freed large block", [] { write(freed(large), 0); }),
    {"free a large block twice", free_freed_large, pool_double_free, pool_double_free,
     pool_double_free},
    undefined("read a fresh large block", [] { read(pool().allocate(large), 50'000); }),
    undefined("read what a reallocation added to a large block", read_large_growth),
    bad_write("write behind an aligned block", write_behind_aligned),
};

}  // namespace

std::span<const PlantedBug> bugs_with_pools() noexcept {
    return bugs;
}

}  // namespace tensorpool::testing
