#include "statistics/segment/fork_locks.hpp"

#include "platform/process/fork_handlers.hpp"
#include "statistics/budget/budgets.hpp"
#include "statistics/commit_budget.hpp"
#include "statistics/profile/profiled_blocks.hpp"
#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/sums/snapshot_sources.hpp"

namespace tensorpool::statistics {
namespace {

void before_fork() {
    snapshot_sources().lock();
    commit_budget().lock();
    lock_budgets();
    lock_counters_of_threads();
    profiled_blocks().lock();
    segment().before_fork();
}

void after_fork() {
    commit_budget().unlock();
    snapshot_sources().unlock();
}

void after_fork_in_parent() {
    segment().after_fork_in_parent();
    profiled_blocks().unlock();
    unlock_counters_of_threads();
    unlock_budgets();
    after_fork();
}

void after_fork_in_child() {
    segment().after_fork_in_child();
    profiled_blocks().unlock();
    unlock_counters_of_threads();
    counters_of_threads_in_child();
    budgets_in_child();
    after_fork();
}

// Done while the library is loaded, before there are threads that could fork.
[[maybe_unused]] const bool watches_from_the_start = watch_forks();

}  // namespace

bool watch_forks() noexcept {
    return platform::set_fork_handlers(platform::ForkStage::statistics, before_fork,
                                       after_fork_in_parent, after_fork_in_child);
}

}  // namespace tensorpool::statistics
