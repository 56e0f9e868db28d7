#include <array>
#include <cstring>

#include <tensorpool/arena.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>

#include "memtools/planted_bug.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t bytes = 100;

void write_after_reset() {
    Arena arena;
    void* const p = arena.allocate(bytes);
    arena.reset();
    write(p, 0);
}
void read_after_reset() {
    Arena arena;
    void* const p = std::memset(arena.allocate(bytes), 1, bytes);
    arena.reset();
    read(p, 0);
}
void read_after_scope() {
    Arena arena;
    void* p = nullptr;
    {
        const ArenaScope scope(arena);
        p = std::memset(arena.allocate(bytes), 1, bytes);
    }
    read(p, 0);
}
void write_after_mark() {
    Arena arena;
    (void)arena.allocate(bytes);
    const Arena::Mark mark = arena.mark();
    void* const p = arena.allocate(bytes);
    arena.release_to(mark);
    write(p, 0);
}
void write_behind_block_of_arena() {
    Arena arena;
    void* const p = arena.allocate(bytes);
    (void)arena.allocate(bytes);
    write(p, bytes);
}
void read_reused_arena() {
    Arena arena;
    std::memset(arena.allocate(bytes), 1, bytes);
    arena.reset();
    read(arena.allocate(bytes), 0);
}
void write_released_buffer() {
    alignas(64) static std::array<std::byte, 4096> buffer;
    Arena arena = Arena::over(buffer);
    void* const p = arena.allocate(bytes);
    arena.reset();
    write(p, 0);
}
void write_after_handle() {
    Arena arena;
    PooledAllocation handle(arena, bytes);
    void* const p = handle.get();
    handle.reset();
    write(p, 0);
}
void read_destroyed_arena() {
    void* p = nullptr;
    {
        Arena arena;
        p = std::memset(arena.allocate(bytes), 1, bytes);
    }
    read(p, 0);
}

void write_after_scratch_scope() {
    void* p = nullptr;
    {
        const ScratchScope scope;
        p = Scratch::local().allocate(bytes);
    }
    write(p, 0);
}
void read_after_scratch_scope() {
    void* p = nullptr;
    {
        const ScratchScope scope;
        p = std::memset(Scratch::local().allocate(bytes), 1, bytes);
    }
    read(p, 0);
}
void write_behind_block_of_scratch() {
    const ScratchScope scope;
    void* const p = Scratch::local().allocate(bytes);
    write(p, bytes);
}
void read_fresh_scratch() {
    const ScratchScope scope;
    read(Scratch::local().allocate(bytes), 0);
}
void write_after_scratch_reset() {
    void* const p = Scratch::local().allocate(bytes);
    Scratch::local().reset();
    write(p, 0);
}

constexpr PlantedBug bugs[] = {
    bad_write("write after an arena's reset", write_after_reset),
    bad_read("read after an arena's reset", read_after_reset),
    bad_read("read after an ArenaScope", read_after_scope),
    bad_write("write above a mark after its release", write_after_mark),
    bad_write("write behind a block of an arena", write_behind_block_of_arena),
    undefined("read a reused block of an arena", read_reused_arena),
    bad_write("write a buffer after its arena's reset", write_released_buffer),
    bad_write("write a block of an arena after its handle", write_after_handle),
    {"read a destroyed arena", read_destroyed_arena, "AddressSanitizer: SEGV",
     "MemorySanitizer: SEGV", memcheck_read},
    bad_write("write after a ScratchScope", write_after_scratch_scope),
    bad_read("read after a ScratchScope", read_after_scratch_scope),
    bad_write("write behind a block of a scratch", write_behind_block_of_scratch),
    undefined("read a fresh block of a scratch", read_fresh_scratch),
    bad_write("write after a scratch's reset", write_after_scratch_reset),
};

}  // namespace

std::span<const PlantedBug> bugs_with_arenas() noexcept {
    return bugs;
}

}  // namespace tensorpool::testing
