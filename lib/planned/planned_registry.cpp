#include "planned/planned_registry.hpp"

#include "base/never_destroyed.hpp"
#include "planned/planned_state.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::planned {
namespace {

using detail::PlannedState;

constinit base::NeverDestroyed<PlannedRegistry> the_registry;

// While the library is loaded, before there are threads, as the arenas' registry does it.
[[maybe_unused]] const bool watches_forks_from_the_start = platform::set_fork_handlers(
    platform::ForkPlace::planned, [] { planned_registry().before_fork(); },
    [] { planned_registry().after_fork_in_parent(); },
    [] { planned_registry().after_fork_in_child(); });

}  // namespace

PlannedRegistry& planned_registry() noexcept {
    return the_registry.get();
}

void PlannedRegistry::enter(PlannedState& arena) noexcept {
    const std::lock_guard guard(mutex_);
    arena.next_of_all = arenas_;
    arenas_ = &arena;
}

void PlannedRegistry::leave(PlannedState& arena) noexcept {
    const std::lock_guard guard(mutex_);
    PlannedState** link = &arenas_;
    while (*link != &arena) link = &(*link)->next_of_all;
    *link = arena.next_of_all;
}

void PlannedRegistry::before_fork() noexcept {
    mutex_.lock();
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) arena->lock();
}

void PlannedRegistry::after_fork_in_parent() noexcept {
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) arena->unlock();
    mutex_.unlock();
}

void PlannedRegistry::after_fork_in_child() noexcept {
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) arena->forget_job();
    after_fork_in_parent();
}

}  // namespace tensorpool::planned
