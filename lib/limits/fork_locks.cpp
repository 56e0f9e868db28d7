#include "statistics/segment/fork_locks.hpp"

#include "events/snapshot_sources.hpp"
#include "limits/budgets.hpp"
#include "limits/commit_budget.hpp"
#include "platform/process/fork_handlers.hpp"
#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace limits {
namespace {

void before_fork() {
    events::snapshot_sources().lock();
    commit_budget().lock();
    lock_budgets();
    statistics::lock_counters_of_threads();
    statistics::segment().before_fork();
}

void after_fork() {
    commit_budget().unlock();
    events::snapshot_sources().unlock();
}

void after_fork_in_parent() {
    statistics::segment().after_fork_in_parent();
    statistics::unlock_counters_of_threads();
    unlock_budgets();
    after_fork();
}

void after_fork_in_child() {
    statistics::segment().after_fork_in_child();
    statistics::unlock_counters_of_threads();
    statistics::counters_of_threads_in_child();
    budgets_in_child();
    after_fork();
}

// Done while the library is loaded, before there are threads that could fork.
[[maybe_unused]] const bool watches_from_the_start = statistics::watch_forks();

}  // namespace
}  // namespace limits

bool statistics::watch_forks() noexcept {
    return platform::set_fork_handlers(platform::ForkStage::statistics, limits::before_fork,
                                       limits::after_fork_in_parent, limits::after_fork_in_child);
}

}  // namespace tensorpool
