#include "plan/planned_registry.hpp"

#include "base/never_destroyed.hpp"
#include "plan/orphaned_plans.hpp"
#include "plan/planned_state.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::planned {
namespace {

using detail::PlannedState;

constinit base::NeverDestroyed<base::Registry<PlannedState>> the_registry;

// In the order in which the layer takes them.
void before_fork() noexcept {
    planned_registry().lock();
    planned_registry().for_each([](PlannedState& arena) { arena.server().lock(); });
    kinds::block_servers().lock();
    planned_registry().for_each([](PlannedState& arena) { arena.lock(); });
    orphaned_plans().lock();
}

void after_fork() noexcept {
    orphaned_plans().unlock();
    planned_registry().for_each([](PlannedState& arena) { arena.unlock(); });
    kinds::block_servers().unlock();
    planned_registry().for_each([](PlannedState& arena) { arena.server().unlock(); });
    planned_registry().unlock();
}

// Set while the library is loaded, before there are threads, as in the registry of arenas.
[[maybe_unused]] const bool fork_handlers_set =
    platform::set_fork_handlers(platform::ForkStage::planned, before_fork, after_fork, [] {
        planned_registry().for_each([](PlannedState& arena) { arena.forget_job(); });
        after_fork();
    });

}  // namespace

base::Registry<PlannedState>& planned_registry() noexcept {
    return the_registry.get();
}

}  // namespace tensorpool::planned
