#include "limits/pressure_watch.hpp"
#include "platform/process/fork_handlers.hpp"
#include "statistics/scopes/counters_of_thread.hpp"

namespace tensorpool {
namespace limits {
namespace {

// Returns whether this call opened the budgets and found a problem. Takes no memory from malloc.
bool open_budgets_with_problem(const char* path) {
    const BudgetText file(path);
    // From now on, a fork takes the lock.
    budgets().were_used.store(true, std::memory_order_relaxed);
    const std::lock_guard guard(budgets().naming_mutex);
    if (named_budgets.load(std::memory_order_relaxed) != NamedBudgets::unread) return false;
    bool has_problem = static_cast<bool>(file.error());
    budgets().named.add(file.text(), [&](unsigned, const BudgetProblem&) { has_problem = true; });
    budgets().named.open();
    named_budgets.store(NamedBudgets::some, std::memory_order_release);
    return has_problem;
}

// The two errors that BudgetText finds itself have messages that do not fit.
std::string text_of(const std::error_code& error) {
    if (error == std::errc::invalid_seek) return "expected a regular file";
    if (error == std::errc::file_too_large) {
        return "expected at most " + std::to_string(BudgetText::max_bytes) + " B";
    }
    return error.message();
}

// Takes the lock around a fork, if the process ever had a budget. ThreadSanitizer follows at most
// 64 locks at a time, of which a fork with two pools takes almost all. Forks do not overlap.
void lock_budgets() noexcept {
    budgets().is_fork_locked = budgets().were_used.load(std::memory_order_relaxed);
    if (!budgets().is_fork_locked) return;
    budgets().naming_mutex.lock();
    budgets().mutex.lock();
}

void unlock_budgets() noexcept {
    if (!budgets().is_fork_locked) return;
    budgets().mutex.unlock();
    budgets().naming_mutex.unlock();
}

// Threads that were asking holders do not exist in the child. Without the lock, another thread may
// have been making the first budget, which the child does not have.
void budgets_in_child() noexcept {
    the_watch.forget_looker();
    if (!budgets().is_fork_locked) {
        new (&budgets()) Budgets();
        named_budgets.store(NamedBudgets::unread, std::memory_order_relaxed);
        return;
    }
    for (BudgetNode* root = budgets().roots; root != nullptr; root = root->next) {
        forget_askers(*root);
    }
    unlock_budgets();
}

void before_fork() {
    commit_budget().lock();
    lock_budgets();
    statistics::lock_counters_of_threads();
    statistics::segment().before_fork();
}

void after_fork_in_parent() {
    statistics::segment().after_fork_in_parent();
    statistics::unlock_counters_of_threads();
    unlock_budgets();
    commit_budget().unlock();
}

void after_fork_in_child() {
    statistics::segment().after_fork_in_child();
    statistics::unlock_counters_of_threads();
    statistics::counters_of_threads_in_child();
    budgets_in_child();
    commit_budget().unlock();
}

// Done while the library is loaded, before there are threads that could fork.
[[maybe_unused]] const bool watches_from_the_start = statistics::watch_forks();

}  // namespace

void BudgetTable::open() noexcept {
    const auto is_process = [](const Named& one) { return one.subject == BudgetSubject::process; };
    const std::span<Named> entries(entries_.data(), count_);
    std::partition(entries.begin(), entries.end(), is_process);
    BudgetNode* process = nullptr;
    for (Named& one : entries) {
        one.node = BudgetNode::open(process, is_process(one) ? "process" : one.name, one.limits);
        if (is_process(one)) process = one.node;
    }
}

constinit std::atomic<NamedBudgets> named_budgets = NamedBudgets::unread;

// The texts of problems may come from a malloc that a pool serves, which finds the budgets.
void read_named_budgets_slow() noexcept {
    const char* const path = platform::environment_variable("TENSORPOOL_BUDGETS");
    if (path == nullptr || *path == '\0') {
        named_budgets.store(NamedBudgets::none, std::memory_order_relaxed);
        return;
    }
    try {
        if (!open_budgets_with_problem(path)) return;
        for (const std::string& problem : check_budget_file(path)) {
            platform::say("TENSORPOOL_BUDGETS names %s; ignored", problem.c_str());
        }
    } catch (...) {
        platform::say("TENSORPOOL_BUDGETS names a bad file, and there is no memory to say why");
    }
}

detail::BudgetNode* find_named_budget(BudgetSubject subject, std::string_view name) noexcept {
    const bool has_some = named_budgets.load(std::memory_order_acquire) == NamedBudgets::some;
    return has_some ? budgets().named.find(subject, name) : nullptr;
}

}  // namespace limits

std::vector<std::string> check_budget_file(const std::string& path) {
    const limits::BudgetText file(path.c_str());
    if (file.error()) return {path + ": cannot be read: " + limits::text_of(file.error())};
    std::vector<std::string> problems;
    std::make_unique<limits::BudgetTable>()->add(
        file.text(), [&](unsigned line, const limits::BudgetProblem& problem) {
            problems.push_back(path + ':' + std::to_string(line) + ": found '" +
                               std::string(problem.found.substr(0, 60)) + "'; expected " +
                               problem.expected);
        });
    return problems;
}

bool statistics::watch_forks() noexcept {
    return platform::set_fork_handlers(platform::ForkStage::statistics, limits::before_fork,
                                       limits::after_fork_in_parent, limits::after_fork_in_child);
}

}  // namespace tensorpool
