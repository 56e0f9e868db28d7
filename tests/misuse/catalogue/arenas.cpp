// Misuse of arenas: marks, threads, handles, scopes, and the bytes of their blocks.

#include <memory>
#include <optional>

#include <tensorpool/arena.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

Arena& arena() {
    static Arena& made = *new Arena(arena_options("mine"));
    return made;
}
Arena& one_threads_arena() {
    static Arena& made = *new Arena([] {
        ArenaOptions options = arena_options("mine");
        options.sharing = Sharing::one_thread;
        return options;
    }());
    return made;
}

void release_to_mark_of_other_arena() {
    Arena other(arena_options("theirs"));
    arena().release_to(other.mark());
}
void release_to_mark_of_ended_arena() {
    std::optional<Arena> other(std::in_place, arena_options("theirs"));
    const Arena::Mark mark = other->mark();
    other.reset();
    other.emplace(arena_options("theirs"));
    other->release_to(mark);
}
void release_to_stale_mark() {
    (void)arena().allocate(small);
    const Arena::Mark mark = arena().mark();
    arena().reset();
    (void)arena().allocate(large);
    arena().release_to(mark);
}
void release_to_stale_mark_ahead() {
    (void)arena().allocate(large);
    const Arena::Mark mark = arena().mark();
    arena().reset();
    (void)arena().allocate(small);
    arena().release_to(mark);
}
void release_to_mark_behind_a_handle() {
    PooledAllocation handle(arena(), small);
    const Arena::Mark mark = arena().mark();
    handle.reset();
    (void)arena().allocate(large);
    arena().release_to(mark);
}
void release_to_offset_ahead() {
    (void)arena().allocate(small);
    arena().release_to(arena().used() + 64);
}
void release_to_offset_within_a_block() {
    (void)arena().allocate(small);
    arena().release_to(std::size_t{10});
}

void allocate_on_two_threads() {
    (void)one_threads_arena().allocate(small);
    on_other_thread([] { (void)one_threads_arena().allocate(small); });
}
void release_on_other_thread() {
    (void)one_threads_arena().allocate(small);
    on_other_thread([] { one_threads_arena().reset(); });
}
void trim_on_other_thread() {
    (void)one_threads_arena().allocate(small);
    on_other_thread([] { one_threads_arena().trim(); });
}
void end_handle_on_other_thread() {
    PooledAllocation handle(one_threads_arena(), small);
    on_other_thread([&] { handle.reset(); });
}

void release_past_handle() {
    const Arena::Mark mark = arena().mark();
    const PooledAllocation handle(arena(), small);
    arena().release_to(mark);
}
void reset_past_handle() {
    const PooledAllocation handle(arena(), small);
    arena().reset();
}
void end_scope_before_handle() {
    PooledAllocation handle;
    const ArenaScope scope(arena());
    handle = PooledAllocation(arena(), small);
    // The scope ends first.
}
void end_arena_before_handle() {
    PooledAllocation handle;
    Arena ending(arena_options("mine"));
    handle = PooledAllocation(ending, small);
    if (checks() == Checks::off || checks() == Checks::sampled) (void)handle.detach();
}
void end_scopes_out_of_order() {
    auto outer = std::make_unique<ArenaScope>(arena());
    (void)arena().allocate(small);
    auto inner = std::make_unique<ArenaScope>(arena());
    (void)arena().allocate(small);
    outer.reset();
    (void)arena().allocate(large);
    const std::size_t used = arena().used();
    inner.reset();
    expect_harmless(arena().used() == used);
}

void write_behind_block() {
    write(arena().allocate(small), small);
    arena().reset();
}
void write_released_block() {
    void* const p = arena().allocate(small);
    arena().reset();
    write(hidden(p), 0);
    (void)arena().allocate(small);
}
void write_beyond_the_capacity() {
    write(arena().allocate(small), 1024 * mib);
}
void write_after_the_arenas_end() {
    void* p = nullptr;
    {
        Arena ending(arena_options("mine"));
        p = ending.allocate(small);
    }
    write(hidden(p), 0);
}
void write_measured_block() {
    Arena measuring = Arena::measuring(arena_options("mine"));
    write(hidden(measuring.allocate(small)), 0);
}
void record_object_without_register() {
    (void)arena().record(arena().allocate(small), {});
}
void record_object_of_other_memory() {
    ArenaOptions options = arena_options("mine");
    options.objects = true;
    Arena registering(options);
    int mine = 0;
    (void)registering.record(hidden(&mine), {});
}

constexpr Outcomes reported_and_thrown(Outcome in_words) {
    return {invalid_argument, in_words, in_words, invalid_argument, in_words};
}

constexpr Case cases[] = {
    {"release_to_mark_of_other_arena", release_to_mark_of_other_arena,
     reported_and_thrown("foreign-mark, throws invalid_argument")},
    {"release_to_mark_of_ended_arena", release_to_mark_of_ended_arena,
     reported_and_thrown("foreign-mark, throws invalid_argument")},
    {"release_to_empty_mark", [] { arena().release_to(Arena::Mark()); },
     reported_and_thrown("foreign-mark, throws invalid_argument")},
    {"release_to_stale_mark", release_to_stale_mark,
     reported_and_thrown("stale-mark, throws invalid_argument")},
    {"release_to_stale_mark_ahead", release_to_stale_mark_ahead,
     reported_and_thrown("stale-mark, throws invalid_argument")},
    {"release_to_mark_behind_an_ended_handle", release_to_mark_behind_a_handle,
     reported_and_thrown("stale-mark, throws invalid_argument")},
    {"release_to_offset_ahead", release_to_offset_ahead, always(invalid_argument)},
    {"release_to_offset_within_a_block", release_to_offset_within_a_block,
     always(invalid_argument)},
    {"allocate_from_one_threads_arena_on_two", allocate_on_two_threads, checked(wrong_thread)},
    {"release_one_threads_arena_on_another", release_on_other_thread, checked(wrong_thread)},
    {"trim_one_threads_arena_on_another", trim_on_other_thread, checked(wrong_thread)},
    {"end_handle_of_one_threads_arena_on_another", end_handle_on_other_thread,
     checked(wrong_thread)},
    {"release_past_living_handle", release_past_handle, checked(released_handle)},
    {"reset_past_living_handle", reset_past_handle, checked(released_handle)},
    {"end_arena_scope_before_handle", end_scope_before_handle, checked(released_handle)},
    {"end_arena_before_handle", end_arena_before_handle, checked(outlived_owner)},
    {"end_arena_scopes_out_of_order", end_scopes_out_of_order, always(harmless)},
    {"write_behind_a_block_of_an_arena",
     write_behind_block,
     {passes, passes, passes, passes, overrun}},
    {"write_released_block_of_an_arena",
     write_released_block,
     {passes, passes, passes, passes, write_after_free}},
    {"write_beyond_the_arenas_capacity", write_beyond_the_capacity, always(by_system)},
    {"write_after_the_arenas_end", write_after_the_arenas_end, always(by_system)},
    {"write_block_of_a_measuring_arena", write_measured_block, always(by_system)},
    {"record_object_without_register", record_object_without_register, always(logic_error)},
    {"record_object_of_other_memory", record_object_of_other_memory, always(invalid_argument)},
};

}  // namespace

std::span<const Case> arenas() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
