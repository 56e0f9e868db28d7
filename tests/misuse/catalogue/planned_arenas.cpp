// Misuse of planned arenas, with blocks of the pool and of a plan.

#include <memory>
#include <sstream>

#include <tensorpool/planned_arena.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/serve_scope.hpp>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

PlannedArenaOptions planned_options(const char* name) {
    PlannedArenaOptions options;
    options.name = name;
    options.pool = &pool();
    options.checks = checks();
    return options;
}
PlannedArena& arena() {
    static PlannedArena& made = *new PlannedArena(planned_options("mine"));
    return made;
}
/// Returns a block that a plan serves, in an iteration that continues.
void* planned_block() {
    for (unsigned i = 0; i != 3; ++i) {
        const IterationScope iteration(arena());
        arena().deallocate(arena().allocate(small));
    }
    arena().begin_iteration();
    return arena().allocate(small);
}

void free_foreign() {
    alignas(64) char mine[128];
    arena().deallocate(hidden(mine));
}
void free_interior() {
    arena().deallocate(plus(arena().allocate(small), 64));
}
void free_twice() {
    void* const p = arena().allocate(small);
    arena().deallocate(p);
    arena().deallocate(hidden(p));
}
void free_in_wrong_arena() {
    PlannedArena other(planned_options("theirs"));
    void* const p = arena().allocate(small);
    other.deallocate(hidden(p));
}
void free_planned_twice() {
    void* const p = planned_block();
    arena().deallocate(p);
    arena().deallocate(hidden(p));
}
void free_planned_interior() {
    arena().deallocate(plus(planned_block(), 64));
}
void free_planned_in_the_pool() {
    void* const p = planned_block();
    pool().deallocate(hidden(p));
    arena().deallocate(hidden(p));
}
void free_in_the_pool_too() {
    void* const p = arena().allocate(small);
    pool().deallocate(p);
    arena().deallocate(hidden(p));
}
void write_behind_planned() {
    void* const p = planned_block();
    write(p, small);
    arena().deallocate(p);
}
void end_handle_twice() {
    const PooledAllocation handle(arena(), small);
    arena().deallocate(hidden(handle.get()));
}
void allocate_on_other_thread() {
    arena().begin_iteration();
    on_other_thread([] { (void)arena().allocate(small); });
}
void begin_twice() {
    arena().begin_iteration();
    arena().begin_iteration();
}
void relearn_in_iteration() {
    arena().begin_iteration();
    arena().relearn();
}
void load_garbage() {
    std::istringstream garbage("this is no plan");
    arena().load(garbage);
}
void leak_block() {
    PlannedArena ending(planned_options("mine"));
    (void)ending.allocate(small);
}
void end_in_serve_scope() {
    auto ending = std::make_unique<PlannedArena>(PlannedArenaOptions{.name = "mine"});
    const ServeScope scope(*ending);
    ending.reset();
}
void make_without_learning() {
    PlannedArenaOptions options = planned_options("mine");
    options.learn_iterations = 0;
    const PlannedArena impossible(options);
}

constexpr Case cases[] = {
    {"planned_free_foreign", free_foreign, always(foreign_free)},
    {"planned_free_interior", free_interior, always(foreign_free)},
    {"planned_double_free", free_twice, always(foreign_free)},
    {"planned_free_in_wrong_arena", free_in_wrong_arena, always(foreign_free)},
    {"planned_double_free_of_a_plans_block", free_planned_twice, always(foreign_free)},
    {"planned_free_interior_of_a_plans_block", free_planned_interior, always(foreign_free)},
    {"planned_free_of_a_plans_block_in_the_pool",
     free_planned_in_the_pool,
     {foreign_free, foreign_free, foreign_free, foreign_free, double_free}},
    {"planned_write_behind_a_plans_block",
     write_behind_planned,
     {passes, passes, passes, passes, overrun}},
    {"planned_free_in_the_pool_too", free_in_the_pool_too, always(double_free)},
    {"planned_free_of_a_handles_block", end_handle_twice, always(foreign_free)},
    {"planned_allocate_on_other_thread", allocate_on_other_thread, checked(wrong_thread)},
    {"planned_begin_twice", begin_twice, always(logic_error)},
    {"planned_end_without_begin", [] { arena().end_iteration(); }, always(logic_error)},
    {"planned_relearn_in_iteration", relearn_in_iteration, always(logic_error)},
    {"planned_save_without_plan",
     [] {
         std::ostringstream out;
         arena().save(out);
     },
     always(logic_error)},
    {"planned_load_garbage", load_garbage, always("throws runtime_error")},
    {"planned_leak", leak_block, {passes, passes, leak, passes, leak}},
    {"planned_end_in_its_serve_scope", end_in_serve_scope, always(outlived_owner)},
    {"planned_without_learning", make_without_learning, always(invalid_argument)},
};

}  // namespace

std::span<const Case> planned_arenas() noexcept {
    return cases;
}

}  // namespace tensorpool::misuse
