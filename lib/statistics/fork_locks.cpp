#include "statistics/fork_locks.hpp"

#include <atomic>
#include <mutex>

#include "base/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "statistics/commit_budget.hpp"
#include "statistics/segment.hpp"
#include "statistics/snapshot_sources.hpp"
#include "statistics/thread_slots.hpp"

namespace tensorpool::statistics {
namespace {

void before_fork() {
    snapshot_sources().lock();
    commit_budget().lock();
    lock_thread_slots();
    segment().before_fork();
}

void after_fork() {
    commit_budget().unlock();
    snapshot_sources().unlock();
}

void after_fork_in_parent() {
    segment().after_fork_in_parent();
    unlock_thread_slots();
    after_fork();
}

void after_fork_in_child() {
    segment().after_fork_in_child();
    unlock_thread_slots();
    thread_slots_in_child();
    after_fork();
}

constinit base::NeverDestroyed<std::mutex> mutex;
// Stored with release under the mutex, loaded with acquire before it: what was registered before is
// never registered again, for two handlers would take each lock twice.
constinit std::atomic<bool> watching{false};

// While the library is loaded, before there are threads: a fork that comes while another thread
// registers would leave the child that mutex.
[[maybe_unused]] const bool watches_from_the_start = watch_forks();

}  // namespace

bool watch_forks() noexcept {
    if (watching.load(std::memory_order_acquire)) return true;
    const std::lock_guard guard(mutex.get());
    if (watching.load(std::memory_order_relaxed)) return true;
    if (!platform::set_fork_handlers(before_fork, after_fork_in_parent, after_fork_in_child))
        return false;
    watching.store(true, std::memory_order_release);
    return true;
}

}  // namespace tensorpool::statistics
