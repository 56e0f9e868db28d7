// Wrong accesses to blocks of malloc and new, which the interposer serves.

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

template <std::size_t bytes, std::ptrdiff_t offset>
void write_beyond() {
    void* const p = std::malloc(bytes);
    write(p, bytes + offset);
    std::free(p);
}
void write_string_without_room_for_its_end() {
    const char text[] = "123456789012345678901234";  // of 24 characters
    char* const copy = static_cast<char*>(std::malloc(24));
    std::strcpy(hidden(copy), hidden(text));
    std::free(copy);
}
void write_behind_new() {
    int* const p = new int[25];
    write(p, 25 * sizeof(int));
    delete[] p;
}
void write_behind_calloc() {
    void* const p = std::calloc(5, 5);
    write(p, 25);
    std::free(p);
}
void write_behind_aligned() {
    void* const p = std::aligned_alloc(4096, small);
    write(p, small);
    std::free(p);
}
void write_before_300_kib() {
    (void)hidden(std::malloc(large));
    void* const p = std::malloc(large);
    write(p, -1);
    std::free(p);
}

void reuse(std::size_t bytes) {
    for (unsigned i = 0; i != 400'000; ++i) std::free(hidden(std::malloc(bytes)));
}
void write_freed() {
    void* const p = std::malloc(small);
    std::free(p);
    write(hidden(p), 50);
    reuse(small);
}
void write_deleted() {
    int* const p = new int[25];
    delete[] hidden(p);
    write(hidden(p), 0);
    reuse(small);
}
void write_freed_large() {
    void* const p = std::malloc(large);
    std::free(p);
    write(hidden(p), 0);
}
void read_freed_large() {
    void* const p = std::malloc(large);
    std::free(p);
    (void)read(hidden(p), large / 2);
}
void read_realloced() {
    void* const p = std::malloc(large);
    (void)hidden(std::malloc(large));
    (void)hidden(std::realloc(p, 8 * large));
    (void)read(hidden(p), 0);
}
void write_vectors_old_elements() {
    std::vector<int> vector(100'000, 1);
    int* const first = vector.data();
    vector.resize(1'000'000);
    write(hidden(first), 0);
}

constexpr Case cases[] = {
    {"malloc_write_1_B_behind_24_B", write_beyond<24, 0>, protected_by(overrun, overrun)},
    {"malloc_write_1_B_behind_1000_B", write_beyond<1000, 0>, protected_by(overrun, overrun)},
    {"malloc_write_1_B_behind_300_KiB", write_beyond<large, 0>,
     protected_by(access_beyond, overrun)},
    {"malloc_write_a_page_beyond_300_KiB", write_beyond<large, 4096>,
     protected_by(by_system, access_beyond)},
    {"malloc_write_string_without_room_for_its_end", write_string_without_room_for_its_end,
     protected_by(overrun, overrun)},
    {"new_write_behind_an_array", write_behind_new, protected_by(overrun, overrun)},
    {"calloc_write_1_B_behind_25_B", write_behind_calloc, protected_by(overrun, overrun)},
    {"aligned_alloc_write_1_B_behind_100_B", write_behind_aligned, protected_by(overrun, overrun)},
    {"malloc_write_1_B_before_300_KiB", write_before_300_kib,
     protected_by(access_beyond, access_beyond)},
    {"malloc_write_freed", write_freed, protected_by(access_after_free, write_after_free)},
    {"new_write_deleted", write_deleted, protected_by(access_after_free, write_after_free)},
    {"malloc_write_freed_300_KiB", write_freed_large,
     protected_by(access_after_free, access_after_free)},
    {"malloc_read_freed_300_KiB", read_freed_large,
     protected_by(access_after_free, access_after_free)},
    {"realloc_read_where_it_moved_from", read_realloced,
     protected_by(access_after_free, access_after_free)},
    {"new_write_a_vectors_old_elements", write_vectors_old_elements,
     protected_by(access_after_free, access_after_free)},
};

}  // namespace

std::span<const Case> interposed_accesses() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
