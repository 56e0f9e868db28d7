// Misuse of scratches, whose checks do not depend on the mode except for the bytes of blocks, and
// of contexts.

#include <memory>

#include <tensorpool/context.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

Scratch& scratch() {
    return Scratch::local();
}
Context& context() {
    static Context& made = *new Context([] {
        ContextOptions options;
        options.arena = arena_options("mine");
        options.pool = &pool();
        return options;
    }());
    return made;
}

void end_scopes_out_of_order() {
    auto outer = std::make_unique<ScratchScope>("outer");
    auto inner = std::make_unique<ScratchScope>("inner");
    outer.reset();
}
void end_handles_out_of_order() {
    {
        PooledAllocation first(scratch(), small);
        const PooledAllocation second(scratch(), small);
        first.reset();
    }
    expect_harmless(scratch().used() == 0);
}
void end_handle_under_other_memory() {
    {
        const ScratchScope scope;
        PooledAllocation handle(scratch(), small);
        (void)scratch().allocate(small);
        handle.reset();
    }
    expect_harmless(scratch().used() == 0);
}
void end_scope_before_handle() {
    PooledAllocation handle;
    const ScratchScope scope;
    handle = PooledAllocation(scratch(), small);
}
void end_handle_in_inner_scope() {
    {
        PooledAllocation handle(scratch(), small);
        const ScratchScope scope;
        handle.reset();
    }
    expect_harmless(scratch().used() == 0);
}
void end_handle_on_other_thread() {
    PooledAllocation handle(scratch(), small);
    on_other_thread([&] { handle.reset(); });
}
void reset_before_handle() {
    const PooledAllocation handle(scratch(), small);
    scratch().reset();
}
void reset_in_scope() {
    const ScratchScope scope;
    scratch().reset();
}
void release_to_stale_mark() {
    (void)scratch().allocate(small);
    const Scratch::Mark mark = scratch().mark();
    scratch().reset();
    scratch().release_to(mark);
}
void release_to_mark_of_other_scratch() {
    Scratch::Mark mark;
    on_other_thread([&] { mark = scratch().mark(); });
    (void)scratch().allocate(small);
    scratch().release_to(mark);
}
void release_to_mark_of_other_scope() {
    const Scratch::Mark mark = scratch().mark();
    const ScratchScope scope;
    scratch().release_to(mark);
}
void write_behind_block() {
    write(scratch().allocate(small), small);
    scratch().reset();
}
void write_block_of_ended_scope() {
    void* p = nullptr;
    {
        const ScratchScope scope;
        p = scratch().allocate(small);
    }
    write(hidden(p), 0);
    (void)scratch().allocate(small);
}
void allocate_beyond_a_buffer() {
    alignas(64) static std::byte buffer[4096];
    (void)Scratch::over(buffer).allocate(5000);
}
void pack_too_much() {
    (void)scratch().allocate_matrix_pack(SIZE_MAX / 2, 3, 4);
}

void free_foreign_by_context() {
    alignas(64) static char mine[128];
    context().deallocate(hidden(mine), small);
}
void free_twice_by_context() {
    void* const p = context().allocate(small);
    context().deallocate(p, small);
    context().deallocate(hidden(p), small);
}
void release_context_ahead() {
    (void)context().alloc(small);
    context().release_to(context().mark() + 64);
}
void release_context_past_handle() {
    const PooledAllocation handle(context(), large);
    context().reset();
}
void end_context_before_handle() {
    PooledAllocation handle;
    ContextOptions options;
    options.arena = arena_options("mine");
    Context ending(options);
    handle = PooledAllocation(ending, large);
    if (checks() == Checks::off || checks() == Checks::sampled) (void)handle.detach();
}
void use_scratch_in_its_scope() {
    alignas(64) static std::byte buffer[4096];
    const ScratchAllocationScope scope(context());
    context().use_scratch(buffer);
}
void end_handle_after_allocation_scope() {
    PooledAllocation handle;
    const ScratchAllocationScope scope(context());
    handle = PooledAllocation(context(), small);
}
void reset_scratch_in_scope() {
    const ScratchScope scope;
    context().scratch_reset();
}

constexpr Case cases[] = {
    {"end_scratch_scopes_out_of_order", end_scopes_out_of_order, always(scope_order)},
    {"end_scratch_handles_out_of_order", end_handles_out_of_order, always(harmless)},
    {"end_scratch_handle_under_other_memory", end_handle_under_other_memory, always(harmless)},
    {"end_scratch_scope_before_handle", end_scope_before_handle, always(scope_order)},
    {"end_scratch_handle_in_inner_scope", end_handle_in_inner_scope, always(harmless)},
    {"end_scratch_handle_on_other_thread", end_handle_on_other_thread, always(scope_order)},
    {"reset_scratch_before_handle", reset_before_handle, always(scope_order)},
    {"reset_scratch_in_scope", reset_in_scope, always(logic_error)},
    {"release_scratch_to_stale_mark", release_to_stale_mark, always(logic_error)},
    {"release_scratch_to_mark_of_other_scratch", release_to_mark_of_other_scratch,
     always(logic_error)},
    {"release_scratch_to_mark_of_other_scope", release_to_mark_of_other_scope, always(logic_error)},
    {"release_scratch_to_empty_mark", [] { scratch().release_to({}); }, always(logic_error)},
    {"write_behind_a_block_of_a_scratch",
     write_behind_block,
     {passes, passes, passes, passes, overrun}},
    {"write_block_of_an_ended_scratch_scope",
     write_block_of_ended_scope,
     {passes, passes, passes, passes, write_after_free}},
    {"allocate_beyond_a_scratchs_buffer", allocate_beyond_a_buffer, always(bad_alloc)},
    {"pack_matrix_of_too_many_elements", pack_too_much, always(bad_alloc)},
    {"free_foreign_by_context", free_foreign_by_context, always(foreign_free)},
    {"double_free_by_context", free_twice_by_context, always(double_free)},
    {"release_context_to_mark_ahead", release_context_ahead, always(invalid_argument)},
    {"reset_context_past_handle", release_context_past_handle, checked(released_handle)},
    {"end_context_before_handle", end_context_before_handle, checked(outlived_owner)},
    {"use_contexts_scratch_in_its_scope", use_scratch_in_its_scope, always(logic_error)},
    {"end_allocation_scope_before_handle", end_handle_after_allocation_scope, always(scope_order)},
    {"reset_contexts_scratch_in_scope", reset_scratch_in_scope, always(logic_error)},
    {"restore_scratch_that_was_not_saved", [] { context().restore_scratch(); },
     always(logic_error)},
};

}  // namespace

std::span<const Case> scratches_and_contexts() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
