#include "planned/planned_state.hpp"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/checks.hpp"
#include "base/text.hpp"
#include "events/misuse.hpp"
#include "events/timeline.hpp"
#include "planned/orphaned_plans.hpp"
#include "planned/plan_file.hpp"
#include "planned/planned_registry.hpp"
#include "planned/validate_options.hpp"

namespace tensorpool::detail {

using planned::LearnedPlan;
using planned::ServedPlan;
using State = PlannedArenaStatistics::State;

namespace {

// The value of `next_` while no plan serves: matches no request.
constexpr PlannedBuffer no_turn;

// After a failure to plan or to get memory for a plan, the arena waits for 0, 1, 3, 7 … iterations
// before it learns again, 1023 at most.
constexpr unsigned max_failures = 10;

PlannedArenaOptions validated(PlannedArenaOptions options) {
    planned::validate(options);
    options.name = options.name.substr(0, sizeof PlannedArenaStatistics::name - 1);
    return options;
}

void store(Counter& counter, std::uint64_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
}

}  // namespace

PlannedState::PlannedState(PlannedArena& arena, PlannedArenaOptions options)
    : arena_(arena),
      options_(validated(std::move(options))),
      pool_(options_.pool != nullptr ? *options_.pool : get_global_memory_pool()),
      budget_(options_.budget),
      record_(std::make_shared<planned::OwnedPlannedRecord>(options_.name)),
      drift_(options_.tolerated_misses, options_.drift_iterations),
      idle_iterations_(options_.warm_up_iterations),
      learner_(options_.learn_iterations) {
    arena_.next_ = &no_turn;
    arena_.served_ = &totals_.served;
    arena_.served_bytes_ = &totals_.served_bytes;
    arena_.freed_bytes_ = &totals_.freed_bytes;
    arena_.freed_elsewhere_bytes_ = &totals_.freed_elsewhere_bytes;
    planned::planned_registry().enter(*this);
}

// Blocks that callers of the global pool hold stay valid.
PlannedState::~PlannedState() {
    check_no_blocks_in_use();
    if (server_.is_used()) {
        server_.forget_noted();
        drop_plan();
        for (auto* plan = retired_.get(); plan != nullptr; plan = plan->next.get()) {
            plan->become_orphan();
        }
        planned::orphaned_plans().add(std::move(retired_));
    }
    blocks_.for_each([&](void* block, const auto&) { pool_.deallocate(block); });
    planned::planned_registry().leave(*this);
}

void PlannedState::check_no_blocks_in_use() const noexcept {
    if (!base::checks_sizes(options_.checks) || server_.is_used()) return;
    const PlannedArenaStatistics snapshot = statistics();
    const std::uint64_t bytes = snapshot.in_use_bytes + snapshot.pool_in_use_bytes;
    if (bytes == 0) return;
    events::report_misuse({.kind = events::MisuseKind::leak,
                           .size = static_cast<std::size_t>(bytes),
                           .owner = options_.name},
                          "planned arena '%s': destroyed with blocks of %s in use; expected "
                          "none",
                          options_.name.c_str(), base::BytesText(bytes).c_str());
}

void PlannedState::require_outside(const char* call) const {
    if (!in_iteration_) return;
    throw std::logic_error("tensorpool: planned arena '" + options_.name + "': " + call +
                           ": an iteration is under way; expected none");
}

// Relaxed: a freeing thread compares the first owner only with itself.
void PlannedState::begin_iteration() {
    require_outside("begin_iteration");
    server_.end_rest();
    owner_ = &thread_table;
    const void* no_owner = nullptr;
    arena_.first_owner_.compare_exchange_strong(no_owner, owner_, std::memory_order_relaxed);
    if (plan_ != nullptr) show_first_owner();
    release_retired();
    look_for_plan();
    in_iteration_ = true;
    missed_before_ = missed();
    // Nothing would lie between the blocks of a plan. The pool protects each block, if hardened.
    if (options_.checks == Checks::hardened) return;
    if (plan_ != nullptr) {
        // Without memory, the pool serves this iteration.
        has_turns_ = server_.prepare(*plan_);
        if (has_turns_) arena_.next_ = plan_->tables().buffers;
        show_capacity();
    } else if (idle_iterations_ != 0) {
        --idle_iterations_;
    } else if (job_ == nullptr) {
        const std::lock_guard guard(mutex_);
        learner_.begin_iteration();
    }
}

void PlannedState::end_iteration() {
    if (!in_iteration_) {
        throw std::logic_error("tensorpool: planned arena '" + options_.name +
                               "': end_iteration: no iteration is under way; expected one");
    }
    in_iteration_ = false;
    add(totals_.iterations, 1);
    if (plan_ != nullptr) {
        end_served();
    } else {
        end_learned();
    }
    release_retired();
    if (plan_ != nullptr) server_.rest(*plan_);
    record_->note_iteration();
}

void PlannedState::end_served() noexcept {
    if (!std::exchange(has_turns_, false)) return;
    follower_->end_iteration(*std::exchange(arena_.next_, &no_turn));
    const std::uint64_t missed_now = missed() - missed_before_;
    if (!drift_.note_iteration(missed_now, plan_->plan().requests.size())) return;
    drift_.note_end();
    events::write_entry(EntryKind::drift, LimitKind::none, plan_->plan().peak_bytes, options_.name);
    drop_plan();
}

void PlannedState::end_learned() noexcept {
    try {
        std::unique_lock lock(mutex_);
        if (!learner_.is_noting()) return;
        const bool is_learned = learner_.end_iteration();
        store(totals_.buffers, learner_.learned().size());
        lock.unlock();
        if (is_learned) plan_learned();
    } catch (...) {  // the caller's executor may throw anything
        note_failure();
    }
}

void PlannedState::plan_learned() {
    job_ = std::make_shared<planned::PlanningJob>(learner_.learned(), options_.planning_budget);
    {
        const std::lock_guard guard(mutex_);
        learner_.forget();
    }
    show_state();
    if (!options_.executor) {
        job_->run();
    } else {
        options_.executor([job = job_] { job->run(); });
    }
    look_for_plan();
}

// If the arena holds the only reference to an unfinished job, the executor has dropped it.
void PlannedState::look_for_plan() noexcept {
    if (job_ == nullptr) return;
    const bool is_given_up = job_.use_count() == 1;
    if (!job_->is_done()) {
        if (is_given_up) note_failure();
        return;
    }
    try {
        std::optional<LearnedPlan> plan = std::exchange(job_, nullptr)->take();
        if (!plan) return note_failure();
        add(totals_.planning_ns, plan->planning_ns);
        pages::SlowPath path;
        auto served = ServedPlan::make(std::move(*plan), PoolAccess::of(pool_), budget_, path);
        if (served == nullptr) return note_failure();
        auto follower = std::make_unique<planned::Follower>(served->tables());
        adopt(std::move(served), std::move(follower));
    } catch (const std::exception&) {
        note_failure();
    }
}

void PlannedState::adopt(std::unique_ptr<ServedPlan> plan,
                         std::unique_ptr<planned::Follower> follower) noexcept {
    follower_ = std::move(follower);
    plan_ = std::move(plan);
    plan_->belong_to(&arena_, record_);
    show_first_owner();
    failures_ = 0;
    arena_.tables_ = &plan_->tables();
    add(totals_.plans, 1);
    show_plan();
    events::write_entry(EntryKind::plan, LimitKind::none, plan_->plan().peak_bytes, options_.name);
}

void PlannedState::show_first_owner() noexcept {
    plan_->set_first_owner(arena_.first_owner_.load(std::memory_order_relaxed));
}

void PlannedState::note_failure() noexcept {
    job_ = nullptr;
    idle_iterations_ = (1u << failures_) - 1;
    failures_ = std::min(failures_ + 1, max_failures);
    const std::lock_guard guard(mutex_);
    learner_.forget();
    show_state();
}

void PlannedState::forget_job() noexcept {
    job_ = nullptr;
    show_state();
}

void PlannedState::relearn() {
    require_outside("relearn");
    drop_plan();
    forget();
}

void PlannedState::forget() noexcept {
    job_ = nullptr;
    drift_.forget();
    failures_ = idle_iterations_ = 0;
    const std::lock_guard guard(mutex_);
    learner_.forget();
    show_state();
}

void PlannedState::require_plan() const {
    if (plan_ != nullptr) return;
    throw std::logic_error("tensorpool: planned arena '" + options_.name +
                           "': save: no plan serves; expected one");
}

void PlannedState::save(std::ostream& out) const {
    require_plan();
    planned::write_plan(out, plan_->plan());
}

void PlannedState::load(std::istream& in, const std::string& file) {
    require_outside("load");
    LearnedPlan plan = planned::read_plan(in, file);
    const std::uint64_t bytes = plan.peak_bytes;
    pages::SlowPath path;
    auto served = ServedPlan::make(std::move(plan), PoolAccess::of(pool_), budget_, path);
    if (served == nullptr) refuse_plan(bytes, path);
    auto follower = std::make_unique<planned::Follower>(served->tables());
    drop_plan();
    forget();
    adopt(std::move(served), std::move(follower));
}

void PlannedState::refuse_plan(std::uint64_t bytes, const pages::SlowPath& path) const {
    const PlannedArenaStatistics snapshot = statistics();
    const limits::BudgetLines lines(path.budget);
    throw AllocationError(options_.name.c_str(), {.asked = bytes,
                                                  .in_use = snapshot.in_use_bytes,
                                                  .capacity = snapshot.capacity_bytes,
                                                  .limit = path.refusal.limit,
                                                  .limit_bytes = path.refusal.limit_bytes,
                                                  .details = lines.c_str()});
}

std::uint64_t PlannedState::sequence_checksum() const {
    return plan_ != nullptr ? planned::checksum_of(plan_->plan().requests) : 0;
}

// Blocks of the plan may be freed at any time, also while it is retired.
void PlannedState::drop_plan() noexcept {
    if (plan_ == nullptr) return show_state();
    server_.end_rest();
    follower_ = nullptr;
    arena_.tables_ = nullptr;
    {
        const std::lock_guard guard(mutex_);
        plan_->next = std::move(retired_);
        retired_ = std::move(plan_);
    }
    release_retired();
    show_plan();
}

void PlannedState::release_retired() noexcept {
    if (retired_ == nullptr) return;
    std::unique_ptr<ServedPlan> released;  // destroyed outside of the lock
    {
        const std::lock_guard guard(mutex_);
        released = planned::take_unheld(retired_);
    }
    if (released == nullptr) return;
    released = nullptr;
    show_plan();
}

void PlannedState::show_plan() noexcept {
    const LearnedPlan nothing;
    const LearnedPlan& plan = plan_ != nullptr ? plan_->plan() : nothing;
    store(totals_.buffers, plan.requests.size());
    store(totals_.lower_bound_bytes, plan.lower_bound_bytes);
    store(totals_.pool_peak_bytes, plan.pool_peak_bytes);
    store(totals_.plan_peak_bytes, plan.peak_bytes);
    show_state();
    show_capacity();
}

void PlannedState::show_capacity() noexcept {
    std::uint64_t capacity = plan_ != nullptr ? plan_->capacity() : 0;
    for (auto* old = retired_.get(); old != nullptr; old = old->next.get()) {
        capacity += old->capacity();
    }
    if (totals_.capacity_bytes.load(std::memory_order_relaxed) == capacity) return;
    store(totals_.capacity_bytes, capacity);
    record_->note_capacity();
}

void PlannedState::show_state() noexcept {
    if (plan_ != nullptr) return record_->set_state(State::serving);
    record_->set_state(job_ != nullptr ? State::planning : State::learning);
}

std::uint64_t PlannedState::missed() const noexcept {
    const auto read = [](const Counter& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    return read(totals_.too_large) + read(totals_.out_of_order) + read(totals_.unknown) +
           read(totals_.still_in_use);
}

}  // namespace tensorpool::detail
