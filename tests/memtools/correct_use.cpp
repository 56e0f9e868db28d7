#include <array>
#include <cstring>
#include <memory_resource>
#include <thread>
#include <vector>

#include <tensorpool/allocator.hpp>
#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/memory_resource.hpp>
#include <tensorpool/planned_arena.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>

#include "memtools/planted_bug.hpp"

namespace tensorpool::testing {
namespace {

void* write_all(void* p, std::size_t bytes) {
    std::memset(p, 1, bytes);
    read(p, 0);
    read(p, static_cast<std::ptrdiff_t>(bytes) - 1);
    return p;
}

void use_pool(MemoryPool& pool) {
    std::vector<std::pair<void*, std::size_t>> blocks;
    for (unsigned round = 0; round != 3; ++round) {
        for (std::size_t bytes = 1; bytes < (std::size_t{1} << 22); bytes = bytes * 3 + 1) {
            blocks.emplace_back(write_all(pool.allocate(bytes), bytes), bytes);
            blocks.emplace_back(write_all(pool.allocate(bytes, 1024), bytes), 0);
            void* const zeros = pool.allocate_zeroed(1, bytes);
            read(zeros, static_cast<std::ptrdiff_t>(bytes) - 1);
            blocks.emplace_back(zeros, bytes);
        }
        for (const auto& [p, bytes] : blocks) {
            bytes != 0 ? pool.deallocate(p, bytes) : pool.deallocate(p);
        }
        blocks.clear();
        if (round == 1) pool.trim();
    }
    void* p = write_all(pool.allocate(10), 10);
    constexpr std::size_t sizes[] = {60, 70, 5000, 100'000, 200'000, 8'000'000, 150'000, 30};
    std::size_t old = 10;
    for (const std::size_t bytes : sizes) {
        p = pool.reallocate(p, old, bytes);
        read(p, 9);
        write_all(p, bytes);
        old = bytes;
    }
    pool.deallocate(p, old);
}

void use_arena(Arena& arena) {
    for (unsigned round = 0; round != 3; ++round) {
        write_all(arena.allocate(100), 100);
        const ArenaScope scope(arena);
        for (std::size_t bytes = 1; bytes < 2000; bytes *= 3)
            write_all(arena.allocate(bytes), bytes);
        PooledAllocation handle(arena, 70);
        write_all(handle.get(), 70);
        handle.reset();
        write_all(arena.allocate(200), 200);
    }
    arena.reset();
    arena.trim();
    write_all(arena.allocate(500), 500);
}

// What was a buffer of an arena is the caller's again.
void use_buffer(MemoryPool& pool) {
    constexpr std::size_t bytes = 40'000;
    auto* const buffer = static_cast<std::byte*>(pool.allocate(bytes));
    {
        Arena arena = Arena::over({buffer, bytes});
        use_arena(arena);
    }
    write_all(buffer, bytes);
    {
        Scratch scratch = Scratch::over({buffer, bytes});
        const ScratchScope scope(scratch);
        write_all(scratch.allocate(100), 100);
    }
    write_all(buffer, bytes);
    pool.deallocate(buffer);
}

void use_scratch() {
    for (unsigned round = 0; round != 3; ++round) {
        const ScratchScope outer("outer");
        write_all(Scratch::local().allocate(100), 100);
        const ScratchScope inner;
        for (std::size_t bytes = 1; bytes < (std::size_t{1} << 22); bytes *= 7) {
            write_all(Scratch::local().allocate(bytes), bytes);
        }
    }
    Scratch::local().reset();
    Scratch::local().trim();
}

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
constexpr bool is_memory_sanitizer = true;
#else
constexpr bool is_memory_sanitizer = false;
#endif
#else
constexpr bool is_memory_sanitizer = false;
#endif

void use_planned_arena() {
    PlannedArena arena;
    for (unsigned iteration = 0; iteration != 8; ++iteration) {
        arena.begin_iteration();
        void* const first = write_all(arena.allocate(100'000), 100'000);
        void* const second = write_all(arena.allocate(5000), 5000);
        arena.deallocate(first);
        void* const third = write_all(arena.allocate(80'000), 80'000);
        arena.deallocate(second);
        arena.deallocate(third);
        arena.end_iteration();
    }
}

void use_containers(MemoryPool& pool) {
    std::vector<int, Allocator<int>> numbers(pool);
    for (int i = 0; i != 10'000; ++i) numbers.push_back(i);
    PoolResource resource(pool);
    std::pmr::vector<std::pmr::vector<char>> texts(&resource);
    for (int i = 0; i != 100; ++i) texts.emplace_back(static_cast<std::size_t>(i) + 1, 'x');
}

}  // namespace

void use_correctly() {
    use_pool(get_global_memory_pool());
    use_containers(get_global_memory_pool());
    {
        MemoryPool pool;
        use_pool(pool);
        use_containers(pool);
        use_buffer(pool);
        (void)pool.allocate(100);  // given back by the pool
    }
    PoolOptions checked;
    checked.checks = Checks::full;
    MemoryPool checked_pool(checked);
    use_pool(checked_pool);
    Arena arena;
    use_arena(arena);
    use_scratch();
    std::thread([] {
        use_pool(get_global_memory_pool());
        use_scratch();
    }).join();
    // The inline path of a plan reads tables that the library wrote, which MemorySanitizer sees
    // only in a library that it compiled.
    if (!is_memory_sanitizer) use_planned_arena();
    // Other code gets the addresses of what was given back.
    std::vector<std::vector<char>> others;
    for (int i = 0; i != 20; ++i) others.emplace_back(std::size_t{1} << 21, 'x');
    read(others.back().data(), 0);
}

}  // namespace tensorpool::testing
