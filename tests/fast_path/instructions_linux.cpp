// Counts the instructions of allocating and freeing a small block, which README.md promises, one by
// one: the number is exact, and no clock is involved. Prints the number and fails if there are
// more.

#include <cstddef>
#include <cstdio>

#include <tensorpool/memory_pool.hpp>

#include "support/counted_call_linux.hpp"

namespace {

using tensorpool::testing::count_call;

constexpr unsigned promised = 50;
constexpr int skipped = 77;
constexpr unsigned few = 10;
constexpr unsigned many = 110;

/// Hides a value and the contents of memory from the compiler.
template <class T>
void opaque(T& value) {
    asm volatile("" : "+r"(value) : : "memory");
}

/// What `perf/instructions` counts too: sizes of two buckets that are known at run time only.
struct Pool {
    static void* allocate(std::size_t bytes) {
        return tensorpool::get_global_memory_pool().allocate(bytes);
    }
    static void deallocate(void* block, std::size_t bytes) {
        tensorpool::get_global_memory_pool().deallocate(block, bytes);
    }
};

/// The loop alone.
struct Nothing {
    static void* allocate(std::size_t) { return nullptr; }
    static void deallocate(void*, std::size_t) {}
};

template <class Subject>
void pair(std::size_t bytes) {
    opaque(bytes);
    void* block = Subject::allocate(bytes);
    opaque(block);
    opaque(bytes);
    Subject::deallocate(block, bytes);
}

template <class Subject>
unsigned instructions_of_pairs(unsigned pairs) {
    return count_call([pairs] {
               for (unsigned made = 0; made != pairs; made += 2) {
                   pair<Subject>(256);
                   pair<Subject>(1024);
               }
           })
        .instructions;
}

template <class Subject>
unsigned instructions_of_100_pairs() {
    instructions_of_pairs<Subject>(many);  // gets the thread's blocks
    return instructions_of_pairs<Subject>(many) - instructions_of_pairs<Subject>(few);
}

}  // namespace

int main() {
    if (instructions_of_pairs<Nothing>(few) < few) {
        std::puts("skipped: this system stops no program after each of its instructions");
        return skipped;
    }
    const unsigned counted =
        instructions_of_100_pairs<Pool>() - instructions_of_100_pairs<Nothing>();
    std::printf("100 pairs take %u instructions; expected at most %u\n", counted, 100 * promised);
    return counted <= 100 * promised && counted != 0 ? 0 : 1;
}
