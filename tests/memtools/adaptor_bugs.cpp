#include <cstring>
#include <memory_resource>
#include <utility>
#include <vector>

#include <tensorpool/tensorpool.h>
#include <tensorpool/allocator.hpp>
#include <tensorpool/memory_resource.hpp>
#include <tensorpool/planned_arena.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/pooled_array.hpp>
#include <tensorpool/pooled_pointer.hpp>

#include "memtools/planted_bug.hpp"

namespace tensorpool::testing {
namespace {

using Numbers = std::vector<int, Allocator<int>>;

Numbers numbers() {
    Numbers made;
    made.reserve(25);
    made.assign(25, 1);
    return made;
}

void write_behind_vector() {
    Numbers made = numbers();
    write(made.data(), 25 * sizeof(int));
}
void read_vector_before_growth() {
    Numbers made = numbers();
    const int* const first = made.data();
    made.resize(1000);
    read(first, 0);
}
void read_vector_after_its_end() {
    const int* first = nullptr;
    {
        const Numbers made = numbers();
        first = made.data();
    }
    read(first, 0);
}
void write_string_of_resource() {
    PoolResource resource;
    char* text = nullptr;
    {
        std::pmr::vector<char> letters(100, 'x', &resource);
        text = letters.data();
    }
    write(text, 50);
}
void write_list_of_arena() {
    Arena arena;
    ArenaResource resource(arena);
    std::pmr::vector<int> made(25, 1, &resource);
    arena.reset();
    write(made.data(), 0);
}
void read_after_pointer() {
    auto owned = make_pooled_unique<std::pair<int, int>>(1, 2);
    const auto* const p = owned.get();
    owned.reset();
    read(p, 0);
}
void write_after_handle() {
    PooledAllocation handle(100);
    void* const p = handle.get();
    handle.reset();
    write(p, 0);
}
void read_behind_array() {
    const PooledArray<float> array(25);
    read(array.data(), 25 * sizeof(float));
}
void write_after_free_in_c() {
    void* const p = tensorpool_allocate(tensorpool_global(), 100);
    tensorpool_deallocate(tensorpool_global(), p);
    write(p, 0);
}
void write_freed_of_planned_arena() {
    PlannedArena arena;
    arena.begin_iteration();
    void* const p = arena.allocate(100);
    arena.deallocate(p);
    write(p, 0);
}

constexpr PlantedBug bugs[] = {
    bad_write("write behind a std::vector", write_behind_vector),
    bad_read("read a std::vector's old elements", read_vector_before_growth),
    bad_read("read a destroyed std::vector", read_vector_after_its_end),
    bad_write("write a destroyed std::pmr::vector", write_string_of_resource),
    bad_write("write a std::pmr::vector after its arena's reset", write_list_of_arena),
    bad_read("read an object after its unique pointer", read_after_pointer),
    bad_write("write a block after its handle", write_after_handle),
    bad_read("read behind a PooledArray", read_behind_array),
    bad_write("write a block freed in C", write_after_free_in_c),
    bad_write("write a freed block of a PlannedArena that learns", write_freed_of_planned_arena),
};

}  // namespace

std::span<const PlantedBug> bugs_with_adaptors() noexcept {
    return bugs;
}

}  // namespace tensorpool::testing
