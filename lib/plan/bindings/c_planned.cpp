// Planned arenas for C. A tensorpool_planned_arena is a PlannedArena.

#include <tensorpool/tensorpool_planned.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <tensorpool/planned_arena.hpp>
#include <tensorpool/serve_scope.hpp>

#include "adaptors/c_calls.hpp"
#include "adaptors/sized_struct.hpp"

// A job that the caller's executor has not run yet.
struct tensorpool_planning_job {
    std::function<void()> make_plan;
};

// One of the two has a value.
struct tensorpool_serve_scope {
    std::optional<tensorpool::ServeScope> begun;
    std::optional<tensorpool::JoinServeScope> joined;
};

namespace tensorpool::adaptors {
namespace {

constexpr const char* an_arena = "one from tensorpool_planned_arena_create";

PlannedArena& to_arena(tensorpool_planned_arena* arena) {
    return required(reinterpret_cast<PlannedArena*>(arena), "arena", an_arena);
}
const PlannedArena& to_arena(const tensorpool_planned_arena* arena) {
    return required(reinterpret_cast<const PlannedArena*>(arena), "arena", an_arena);
}

const char* a_path(const char* path) {
    return &required(path, "path", "the name of a file");
}

using State = PlannedArenaStatistics::State;
static_assert(static_cast<int>(State::learning) == tensorpool_planned_arena_learning);
static_assert(static_cast<int>(State::planning) == tensorpool_planned_arena_planning);
static_assert(static_cast<int>(State::serving) == tensorpool_planned_arena_serving);

constexpr const char* options_name = "tensorpool_planned_arena_options";
constexpr std::size_t first_options_bytes =
    offsetof(tensorpool_planned_arena_options, executor_user) +
    sizeof(tensorpool_planned_arena_options::executor_user);
constexpr std::size_t first_statistics_bytes =
    offsetof(tensorpool_planned_arena_statistics, plans) +
    sizeof(tensorpool_planned_arena_statistics::plans);

tensorpool_planned_arena_options defaults() {
    const PlannedArenaOptions from;
    tensorpool_planned_arena_options to = {};
    to.struct_bytes = sizeof to;
    to.name = "planned";
    to.learn_iterations = from.learn_iterations;
    to.drift_iterations = from.drift_iterations;
    to.warm_up_iterations = from.warm_up_iterations;
    to.planning_budget_ns = static_cast<std::uint64_t>(from.planning_budget.count());
    to.tolerated_misses = from.tolerated_misses;
    to.checks = static_cast<std::int32_t>(from.checks);
    return to;
}

using Executor = void (*)(tensorpool_planning_job*, void*);

std::function<void(std::function<void()>)> to_executor(Executor executor, void* user) {
    if (executor == nullptr) return {};
    return [executor, user](std::function<void()> make_plan) {
        executor(new tensorpool_planning_job{std::move(make_plan)}, user);
    };
}

std::chrono::nanoseconds to_budget(std::uint64_t nanoseconds) {
    constexpr auto longest = static_cast<std::uint64_t>(std::chrono::nanoseconds::max().count());
    if (nanoseconds <= longest) return std::chrono::nanoseconds(nanoseconds);
    throw std::invalid_argument("planning_budget_ns is " + std::to_string(nanoseconds) +
                                ", expected at most " + std::to_string(longest));
}

PlannedArenaOptions to_planned_options(const tensorpool_planned_arena_options* options) {
    if (options == nullptr) return {};
    const tensorpool_planned_arena_options from =
        known_part(*options, defaults(), options_name, first_options_bytes);
    if (from.name == nullptr) refuse_null("name", "a text");
    PlannedArenaOptions to;
    to.name = from.name;
    to.pool = reinterpret_cast<MemoryPool*>(from.pool);
    to.learn_iterations = from.learn_iterations;
    to.drift_iterations = from.drift_iterations;
    to.warm_up_iterations = from.warm_up_iterations;
    to.planning_budget = to_budget(from.planning_budget_ns);
    to.tolerated_misses = from.tolerated_misses;
    to.checks = to_enumeration("checks", from.checks, Checks::hardened);
    to.executor = to_executor(from.executor, from.executor_user);
    return to;
}

tensorpool_planned_arena_statistics headline(const PlannedArenaStatistics& from) {
    return {.struct_bytes = sizeof(tensorpool_planned_arena_statistics),
            .state = static_cast<std::uint64_t>(from.state),
            .buffers = from.buffers,
            .lower_bound_bytes = from.lower_bound_bytes,
            .plan_peak_bytes = from.plan_peak_bytes,
            .capacity_bytes = from.capacity_bytes,
            .in_use_bytes = from.in_use_bytes,
            .pool_in_use_bytes = from.pool_in_use_bytes,
            .iterations = from.iterations,
            .served = from.served,
            .from_pool = from.from_pool,
            .plans = from.plans};
}

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;
using tensorpool::PlannedArena;

void tensorpool_planning_job_run(tensorpool_planning_job* job) {
    if (job == nullptr) return;
    const std::unique_ptr<tensorpool_planning_job> owned(job);
    guarded("planning_job_run", [&] { owned->make_plan(); });
}

tensorpool_status tensorpool_planned_arena_options_init(tensorpool_planned_arena_options* options,
                                                        size_t struct_bytes) {
    return guarded("planned_arena_options_init", [&] {
        set_options(options, struct_bytes, options_name, first_options_bytes, defaults());
    });
}

tensorpool_planned_arena* tensorpool_planned_arena_create(
    const tensorpool_planned_arena_options* options) {
    return reinterpret_cast<tensorpool_planned_arena*>(
        guarded_or<PlannedArena*>(nullptr, "planned_arena_create",
                                  [&] { return new PlannedArena(to_planned_options(options)); }));
}

void tensorpool_planned_arena_destroy(tensorpool_planned_arena* arena) {
    delete reinterpret_cast<PlannedArena*>(arena);
}

tensorpool_status tensorpool_planned_arena_begin_iteration(tensorpool_planned_arena* arena) {
    return guarded("planned_arena_begin_iteration", [&] { to_arena(arena).begin_iteration(); });
}

tensorpool_status tensorpool_planned_arena_end_iteration(tensorpool_planned_arena* arena) {
    return guarded("planned_arena_end_iteration", [&] { to_arena(arena).end_iteration(); });
}

void* tensorpool_planned_arena_allocate(tensorpool_planned_arena* arena, size_t bytes) {
    return guarded_or<void*>(nullptr, "planned_arena_allocate",
                             [&] { return to_arena(arena).allocate(bytes); });
}

void* tensorpool_planned_arena_allocate_aligned(tensorpool_planned_arena* arena, size_t bytes,
                                                size_t alignment) {
    return guarded_or<void*>(nullptr, "planned_arena_allocate_aligned",
                             [&] { return to_arena(arena).allocate(bytes, alignment); });
}

void tensorpool_planned_arena_deallocate(tensorpool_planned_arena* arena, void* block) {
    if (block == nullptr) return;
    guarded("planned_arena_deallocate", [&] { to_arena(arena).deallocate(block); });
}

tensorpool_status tensorpool_planned_arena_relearn(tensorpool_planned_arena* arena) {
    return guarded("planned_arena_relearn", [&] { to_arena(arena).relearn(); });
}

tensorpool_status tensorpool_planned_arena_save(const tensorpool_planned_arena* arena,
                                                const char* path) {
    return guarded("planned_arena_save", [&] { to_arena(arena).save(a_path(path)); });
}

tensorpool_status tensorpool_planned_arena_load(tensorpool_planned_arena* arena, const char* path) {
    return guarded("planned_arena_load", [&] { to_arena(arena).load(a_path(path)); });
}

uint64_t tensorpool_planned_arena_sequence_checksum(const tensorpool_planned_arena* arena) {
    return guarded_or<std::uint64_t>(0, "planned_arena_sequence_checksum",
                                     [&] { return to_arena(arena).sequence_checksum(); });
}

tensorpool_status tensorpool_planned_arena_read_statistics(
    const tensorpool_planned_arena* arena, tensorpool_planned_arena_statistics* statistics) {
    return guarded("planned_arena_read_statistics", [&] {
        fill_in(statistics, "statistics", "tensorpool_planned_arena_statistics",
                first_statistics_bytes, [&] { return headline(to_arena(arena).statistics()); });
    });
}

int tensorpool_planned_arena_report_json(const tensorpool_planned_arena* arena, char* buffer,
                                         size_t buffer_bytes) {
    return guarded_or<int>(-1, "planned_arena_report_json", [&] {
        return print(to_json(to_arena(arena).statistics()), buffer, buffer_bytes);
    });
}

tensorpool_serve_scope* tensorpool_serve_begin(tensorpool_planned_arena* arena, size_t min_bytes) {
    return guarded_or<tensorpool_serve_scope*>(nullptr, "serve_begin", [&] {
        auto scope = std::make_unique<tensorpool_serve_scope>();
        const std::size_t least =
            min_bytes != 0 ? min_bytes : tensorpool::ServeScope::default_min_bytes;
        scope->begun.emplace(to_arena(arena), least);
        return scope.release();
    });
}

tensorpool_serve_scope* tensorpool_serve_join(const tensorpool_serve_scope* scope) {
    return guarded_or<tensorpool_serve_scope*>(nullptr, "serve_join", [&] {
        const auto& begun = required(scope, "scope", "one from tensorpool_serve_begin").begun;
        if (!begun) {
            throw std::invalid_argument(
                "scope is one from tensorpool_serve_join, expected one from "
                "tensorpool_serve_begin");
        }
        auto part = std::make_unique<tensorpool_serve_scope>();
        part->joined.emplace(*begun);
        return part.release();
    });
}

void tensorpool_serve_end(tensorpool_serve_scope* scope) {
    delete scope;
}
