#pragma once

#include <tensorpool/planned_arena.hpp>

#include "events/timeline.hpp"
#include "plan/pool_requests.hpp"
#include "plan/served_plan.hpp"

namespace tensorpool::planned {

/// Throws std::invalid_argument if an option is invalid. The message names the arena, the option,
/// what was found and what was expected.
inline void validate(const PlannedArenaOptions& options) {
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("tensorpool: planned arena '" + options.name + "': " + what);
    };
    if (options.learn_iterations == 0) refuse("learn_iterations is 0; expected at least 1");
    if (options.drift_iterations == 0) refuse("drift_iterations is 0; expected at least 1");
    if (!(options.tolerated_misses >= 0)) {
        refuse("tolerated_misses is " + std::to_string(options.tolerated_misses) +
               "; expected 0 or more");
    }
    if (options.planning_budget.count() < 0) {
        refuse("planning_budget is " + std::to_string(options.planning_budget.count()) +
               " ns; expected 0 or more");
    }
}

/// Decides from the misses of each iteration whether a plan is still worth keeping.
class Drift {
public:
    /// An iteration drifts if it misses more than the fraction `tolerated` of the buffers. After
    /// `iterations` drifting iterations in a row, at least 1, the plan should be given up.
    Drift(double tolerated, unsigned iterations) noexcept
        : tolerated_(tolerated), iterations_(iterations) {}

    /// Records the end of an iteration. Returns true if the plan should be given up.
    bool note_iteration(std::uint64_t missed, std::uint64_t buffers) noexcept {
        if (static_cast<double>(missed) <= tolerated_ * static_cast<double>(buffers)) {
            in_a_row_ = 0;
            doublings_ = 0;
            return false;
        }
        return ++in_a_row_ >= std::uint64_t{iterations_} << doublings_;
    }
    /// Records that the plan was given up. The next one may be no better, so the limit doubles.
    void note_end() noexcept {
        in_a_row_ = 0;
        doublings_ = std::min(doublings_ + 1, max_doublings);
    }
    void forget() noexcept { in_a_row_ = doublings_ = 0; }

private:
    static constexpr unsigned max_doublings = 6;
    double tolerated_;
    unsigned iterations_;
    unsigned in_a_row_ = 0;
    unsigned doublings_ = 0;
};

/// Whether `exit` was called: the scopes of its caller never end. Relaxed: it publishes nothing.
inline constinit std::atomic<bool> is_exiting = false;

}  // namespace tensorpool::planned

namespace tensorpool::detail {

class PlannedState;

/// All planned arenas of the process. Fork handlers take the locks of all of them, so that the
/// child finds none locked.
inline constinit base::NeverDestroyed<base::Registry<PlannedState>> planned_arenas;

// The value of `next_` while no plan serves: matches no request.
inline constexpr PlannedBuffer no_turn;

// After a failure to plan or to get memory for a plan, the arena waits for 0, 1, 3, 7 … iterations
// before it learns again, 1023 at most.
inline constexpr unsigned max_failures = 10;

inline PlannedArenaOptions validated(PlannedArenaOptions options) {
    planned::validate(options);
    options.name = options.name.substr(0, sizeof PlannedArenaStatistics::name - 1);
    return options;
}

inline std::uint64_t missed(const statistics::PlannedTotals& totals) noexcept {
    const auto read = [](const Counter& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    return read(totals.too_large) + read(totals.out_of_order) + read(totals.unknown) +
           read(totals.still_in_use);
}

inline void report_blocks_in_use(const PlannedArenaOptions& options,
                                 const PlannedArenaStatistics& now) noexcept {
    const std::uint64_t bytes = now.in_use_bytes + now.pool_in_use_bytes;
    if (bytes == 0) return;
    events::report_misuse({.kind = events::MisuseKind::leak,
                           .size = static_cast<std::size_t>(bytes),
                           .owner = options.name},
                          "planned arena '%s': destroyed with blocks of %s in use; expected none",
                          options.name.c_str(), base::BytesText(bytes).c_str());
}

inline void require_outside(bool in_iteration, const std::string& arena, const char* call) {
    if (!in_iteration) return;
    throw std::logic_error("tensorpool: planned arena '" + arena + "': " + call +
                           ": an iteration is under way; expected none");
}

[[noreturn]] inline void refuse_plan(const std::string& arena, const PlannedArenaStatistics& now,
                                     std::uint64_t bytes, const pages::SlowPath& path) {
    const limits::BudgetLines lines(path.budget);
    throw AllocationError(arena.c_str(), {.asked = bytes,
                                          .in_use = now.in_use_bytes,
                                          .capacity = now.capacity_bytes,
                                          .limit = path.refusal.limit,
                                          .limit_bytes = path.refusal.limit_bytes,
                                          .details = lines.c_str()});
}

// Requests that the plan serves are not checked, because the check would slow down each of them.
inline void check_thread(const PlannedArenaOptions& options, const void* owner) noexcept {
    if (!base::checks_calls(options.checks) || owner == &thread_table) return;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::wrong_thread, .owner = options.name},
        "allocate: planned arena '%s' belongs to the thread that began its iteration, and another "
        "one used it",
        options.name.c_str());
}

/// The implementation of a PlannedArena, except for the fields that each served request reads. Its
/// states follow in a cycle: *learning* records the requests that the pool serves, *planning* makes
/// a plan, here or on the executor, and *serving* uses the plan until it is given up.
///
/// Its lock protects the state of blocks that do not come from the current plan. The pool is called
/// without the lock.
class PlannedState : public base::Lockable {
public:
    /// Serves the plan to threads that allocate from the global pool (ServeScope). Its lock orders
    /// the requests of all threads that have joined a scope.
    class Server final : public kinds::BlockServer, public base::Lockable {
    public:
        explicit Server(PlannedState& state) noexcept : state_(state) {
            kinds::block_servers().enter(*this);
        }
        /// The state must have forgotten its noted blocks (`forget_noted`).
        ~Server() { kinds::block_servers().leave(*this); }

        /// Returns whether a thread was served at any time.
        bool is_used() const noexcept { return is_used_; }
        /// Returns whether a ServeScope is open.
        bool is_serving() const noexcept { return is_serving_; }
        void forget_scope() noexcept { is_serving_ = false; }
        void begin_iteration() {
            const std::lock_guard guard(mutex_);
            state_.begin_iteration();
            is_serving_ = true;
            // The pool serves this iteration; it and the idle plans of other loops would add up.
            if (state_.plans_.current() == nullptr) (void)kinds::give_back_idle_plans();
        }
        void end_iteration() noexcept {
            const std::lock_guard guard(mutex_);
            is_serving_ = false;
            state_.end_iteration();
        }
        /// From now on, the plan has no iteration, and its memory may be taken if no block is in
        /// use.
        void rest(planned::ServedPlan& plan) noexcept {
            if (!is_used() || plan.has_held()) return;
            const std::lock_guard guard(kinds::block_servers());
            set_resting(&plan);
            lacked_bytes_ = 0;
        }
        /// The plan is about to be used or dropped.
        void end_rest() noexcept {
            const std::lock_guard guard(kinds::block_servers());
            set_resting(nullptr);
        }
        /// From now on, frees of the pool's blocks are not noted.
        void forget_noted() noexcept {
            const std::lock_guard guard(kinds::block_servers());
            state_.requests_.forget_noted(PoolAccess::of(state_.pool_));
        }

        void* serve(const kinds::Request& request, pages::SlowPath& path) noexcept override {
            Pool& pool = PoolAccess::of(get_global_memory_pool());
            // The thread that asks this one's holder may hold the lock.
            if (limits::is_inside_holder()) return pool.allocate(request, path);
            // Requests for finer sizes come with smaller alignments.
            kinds::Request aligned = request;
            aligned.alignment = std::max(request.alignment, smallest_block_bytes);
            const std::lock_guard guard(mutex_);
            is_used_ = true;
            return state_.serve_for(pool, aligned.bytes, aligned.alignment,
                                    [&] { return pool.allocate(aligned, path); });
        }
        bool note_free(void* p) noexcept override { return state_.requests_.note_free(p); }
        // While little is lacking, the pool grows instead: otherwise a small block between two
        // iterations would lie in the plan's memory, and the plan would have to begin with fresh
        // pages elsewhere.
        void give_back_idle(std::size_t wanted) noexcept override {
            if (resting_ == nullptr) return;
            lacked_bytes_ = sum(lacked_bytes_, wanted);
            if (lacked_bytes_ < resting_->capacity() / 4) return;
            resting_->return_memory();
            set_resting(nullptr);
            state_.plans_.show_capacity();
        }

    private:
        void set_resting(planned::ServedPlan* plan) noexcept {
            if (resting_ == nullptr && plan != nullptr) {
                kinds::idle_plan_count.fetch_add(1, std::memory_order_relaxed);
            }
            if (resting_ != nullptr && plan == nullptr) {
                kinds::idle_plan_count.fetch_sub(1, std::memory_order_relaxed);
            }
            resting_ = plan;
        }

        PlannedState& state_;
        bool is_used_ = false;
        bool is_serving_ = false;
        // The plan whose memory may be taken, and the bytes that requests lacked since it may.
        // Guarded by the lock of `block_servers`.
        planned::ServedPlan* resting_ = nullptr;
        std::size_t lacked_bytes_ = 0;
    };

    PlannedState(PlannedArena& arena, PlannedArenaOptions options)
        : arena_(arena),
          options_(validated(std::move(options))),
          pool_(options_.pool != nullptr ? *options_.pool : get_global_memory_pool()),
          budget_(options_.budget),
          record_(std::make_shared<planned::OwnedPlannedRecord>(options_.name)),
          drift_(options_.tolerated_misses, options_.drift_iterations),
          idle_iterations_(options_.warm_up_iterations) {
        arena_.next_ = &no_turn;
        arena_.served_ = &totals_.served;
        arena_.served_bytes_ = &totals_.served_bytes;
        arena_.freed_bytes_ = &totals_.freed_bytes;
        arena_.freed_elsewhere_bytes_ = &totals_.freed_elsewhere_bytes;
        planned_arenas->enter(*this);
    }
    // Blocks that callers of the global pool hold stay valid.
    ~PlannedState() {
        if (server_.is_serving() && !planned::is_exiting.load(std::memory_order_relaxed)) {
            events::stop_at_misuse(
                {.kind = events::MisuseKind::outlived_owner, .owner = options_.name},
                "planned arena '%s' ended inside its ServeScope", options_.name.c_str());
        }
        // In `exit`, destructors that follow may still allocate on this thread.
        if (kinds::serving.server == &server_) kinds::serving = {};
        if (server_.is_used()) {
            server_.forget_noted();
            drop_plan();
            planned::orphaned_plans().add(plans_.take_orphans());
        } else if (base::checks_sizes(options_.checks)) {
            report_blocks_in_use(options_, statistics());
        }
        requests_.return_all(pool_);
        planned_arenas->leave(*this);
    }

    const PlannedArenaOptions& options() const noexcept { return options_; }
    MemoryPool& pool() const noexcept { return pool_; }
    PlannedArenaStatistics statistics() const noexcept { return record_->statistics(); }

    // For the owner only.
    // Relaxed: a freeing thread compares the first owner only with itself.
    void begin_iteration() {
        require_outside(in_iteration_, options_.name, "begin_iteration");
        server_.end_rest();
        owner_ = &thread_table;
        scope_ = limits::scope_budget;
        const void* no_owner = nullptr;
        arena_.first_owner_.compare_exchange_strong(no_owner, owner_, std::memory_order_relaxed);
        if (auto* const plan = plans_.current())
            plan->set_first_owner(arena_.first_owner_.load(std::memory_order_relaxed));
        plans_.release_retired();
        look_for_plan();
        in_iteration_ = true;
        missed_before_ = missed(totals_);
        // Nothing would lie between the blocks of a plan. The pool protects each block, if
        // hardened.
        if (options_.checks == Checks::hardened) return;
        if (auto* const plan = plans_.current()) {
            // Without memory, the pool serves this iteration.
            pages::SlowPath path;
            has_turns_ = plan->borrow_memory(path);
            if (has_turns_) arena_.next_ = plan->tables().buffers;
            if (!has_turns_ && !plan->has_held()) plan->return_memory();
            plans_.show_capacity();
        } else if (idle_iterations_ != 0) {
            --idle_iterations_;
        } else if (job_ == nullptr) {
            requests_.begin_iteration();
        }
    }
    void end_iteration() {
        if (!in_iteration_) {
            throw std::logic_error("tensorpool: planned arena '" + options_.name +
                                   "': end_iteration: no iteration is under way; expected one");
        }
        in_iteration_ = false;
        add(totals_.iterations, 1);
        if (plans_.current() != nullptr) {
            end_served();
        } else {
            end_learned();
        }
        plans_.release_retired();
        if (auto* const plan = plans_.current()) server_.rest(*plan);
        record_->note_iteration();
    }
    void relearn() {
        require_outside(in_iteration_, options_.name, "relearn");
        drop_plan();
        forget();
    }
    void require_plan() const {
        if (plans_.current() != nullptr) return;
        throw std::logic_error("tensorpool: planned arena '" + options_.name +
                               "': save: no plan serves; expected one");
    }
    void save(std::ostream& out) const {
        require_plan();
        planned::write_plan(out, plans_.current()->plan());
    }
    void load(std::istream& in, const std::string& file) {
        require_outside(in_iteration_, options_.name, "load");
        planned::LearnedPlan plan = planned::read_plan(in, file);
        const std::uint64_t bytes = plan.peak_bytes;
        pages::SlowPath path;
        auto served =
            planned::ServedPlan::make(std::move(plan), PoolAccess::of(pool_), budget_, path);
        if (served == nullptr) refuse_plan(options_.name, statistics(), bytes, path);
        auto follower = std::make_unique<planned::Follower>(served->tables());
        drop_plan();
        forget();
        adopt(std::move(served), std::move(follower));
    }
    std::uint64_t sequence_checksum() const {
        const planned::ServedPlan* const plan = plans_.current();
        return plan != nullptr ? planned::checksum_of(plan->plan().requests) : 0;
    }
    // What the pool serves for this arena is not served by another arena's plan.
    void* allocate(std::size_t bytes, std::size_t alignment) {
        const kinds::ServingThread paused({});
        return serve_or(bytes, alignment, [&] { return pool_.allocate(bytes, alignment); });
    }
    void* try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
        const kinds::ServingThread paused({});
        try {
            return serve_or(bytes, alignment, [&] { return pool_.try_allocate(bytes, alignment); });
        } catch (const std::exception&) {
            return nullptr;  // no memory for the record of the block
        }
    }

    /// Frees a block of the pool. Any thread.
    void deallocate(void* p) noexcept {
        if (requests_.note_free(p)) return pool_.deallocate(p);
        events::report_misuse(
            {.kind = events::MisuseKind::foreign_free, .pointer = p, .owner = options_.name},
            "planned arena '%s': deallocate: %p is not a block in use of this arena",
            options_.name.c_str(), p);
    }

    Server& server() noexcept { return server_; }
    /// Serves a request that a thread made of the global pool, or returns the block that `get`
    /// allocates from it, or nullptr. REQUIRES: the lock of the server is held.
    template <class Get>
    void* serve_for(Pool& pool, std::size_t bytes, std::size_t alignment, Get get) noexcept {
        // What another scope's budget pays for is no part of the iteration.
        const void* const scope = limits::scope_budget;
        if (scope != nullptr && scope != scope_ && budget_.node() == nullptr) return get();
        if (void* const block = arena_.take_next(bytes, alignment)) return block;
        const PlannedBuffer* const before = arena_.next_;
        const Turn turn = find_turn(bytes, alignment);
        if (turn.buffer != nullptr) return serve(*turn.buffer);
        void* const block = get();
        if (block != nullptr) {
            requests_.add_noted(pool, block, bytes, alignment, turn.answer);
        } else {
            arena_.next_ = before;
        }
        return block;
    }

    /// Drops the planning job, and the scope of another thread. Called in the child of a fork,
    /// where the executor's thread and that one are gone.
    void forget_threads() noexcept {
        job_ = nullptr;
        if (owner_ != &thread_table) server_.forget_scope();
        show_state();
    }
    PlannedState* next_of_all = nullptr;  ///< link of the registry, under its mutex

private:
    using Turn = planned::Follower::Turn;

    // Requests that the inline path does not serve.
    Turn find_turn(std::size_t bytes, std::size_t alignment) noexcept {
        if (!in_iteration_ || !has_turns_)
            return {planned::Follower::Answer::left_to_pool, nullptr, arena_.next_};
        const Turn turn = follower_->find(*arena_.next_, bytes, alignment);
        arena_.next_ = turn.next;
        return turn;
    }
    void* serve(const PlannedBuffer& buffer) noexcept {
        plans_.current()->tables().hand_out(buffer);
        totals_.count_served(buffer.bytes);
        return buffer.address;
    }
    // A request that fails leaves the position in the sequence unchanged.
    template <class Get>
    void* serve_or(std::size_t bytes, std::size_t alignment, Get get) {
        if (in_iteration_) check_thread(options_, owner_);
        const PlannedBuffer* const before = arena_.next_;
        const Turn turn = find_turn(bytes, alignment);
        if (turn.buffer != nullptr) return serve(*turn.buffer);
        void* block = nullptr;
        try {
            block = get();
            if (block != nullptr) {
                requests_.add(block, bytes, alignment, pool_.usable_size(block), turn.answer);
                return block;
            }
        } catch (...) {
            arena_.next_ = before;
            if (block != nullptr) pool_.deallocate(block);
            throw;
        }
        arena_.next_ = before;
        return nullptr;
    }

    // Transitions between the states.
    void end_served() noexcept {
        if (!std::exchange(has_turns_, false)) return;
        follower_->end_iteration(*std::exchange(arena_.next_, &no_turn));
        const std::uint64_t missed_now = missed(totals_) - missed_before_;
        const planned::LearnedPlan& plan = plans_.current()->plan();
        if (!drift_.note_iteration(missed_now, plan.requests.size())) return;
        drift_.note_end();
        events::write_entry(EntryKind::drift, LimitKind::none, plan.peak_bytes, options_.name);
        drop_plan();
    }
    void end_learned() noexcept {
        try {
            if (requests_.end_iteration()) plan_learned();
        } catch (...) {  // the caller's executor may throw anything
            note_failure();
        }
    }
    void plan_learned() {
        job_ =
            std::make_shared<planned::PlanningJob>(requests_.learned(), options_.planning_budget);
        requests_.forget_learned();
        show_state();
        if (!options_.executor) {
            job_->run();
        } else {
            options_.executor([job = job_] { job->run(); });
        }
        look_for_plan();
    }
    // If the arena holds the only reference to an unfinished job, the executor has dropped it.
    void look_for_plan() noexcept {
        if (job_ == nullptr) return;
        const bool is_given_up = job_.use_count() == 1;
        if (!job_->is_done()) {
            if (is_given_up) note_failure();
            return;
        }
        try {
            std::optional<planned::LearnedPlan> plan = std::exchange(job_, nullptr)->take();
            if (!plan) return note_failure();
            add(totals_.planning_ns, plan->planning_ns);
            pages::SlowPath path;
            auto served =
                planned::ServedPlan::make(std::move(*plan), PoolAccess::of(pool_), budget_, path);
            if (served == nullptr) return note_failure();
            auto follower = std::make_unique<planned::Follower>(served->tables());
            adopt(std::move(served), std::move(follower));
        } catch (const std::exception&) {
            note_failure();
        }
    }
    void adopt(std::unique_ptr<planned::ServedPlan> plan,
               std::unique_ptr<planned::Follower> follower) noexcept {
        const std::uint64_t bytes = plan->plan().peak_bytes;
        follower_ = std::move(follower);
        plan->belong_to(&arena_, record_);
        plan->set_first_owner(arena_.first_owner_.load(std::memory_order_relaxed));
        failures_ = 0;
        arena_.tables_ = &plan->tables();
        add(totals_.plans, 1);
        plans_.adopt(std::move(plan));
        show_state();
        events::write_entry(EntryKind::plan, LimitKind::none, bytes, options_.name);
    }
    void note_failure() noexcept {
        job_ = nullptr;
        idle_iterations_ = (1u << failures_) - 1;
        failures_ = std::min(failures_ + 1, max_failures);
        requests_.forget_learned();
        show_state();
    }
    void drop_plan() noexcept {
        if (plans_.current() != nullptr) {
            server_.end_rest();
            follower_ = nullptr;
            arena_.tables_ = nullptr;
            plans_.drop();
        }
        show_state();
    }
    void forget() noexcept {
        job_ = nullptr;
        drift_.forget();
        failures_ = idle_iterations_ = 0;
        requests_.forget_learned();
        show_state();
    }
    void show_state() noexcept {
        if (plans_.current() != nullptr)
            return record_->set_state(PlannedArenaStatistics::State::serving);
        record_->set_state(job_ != nullptr ? PlannedArenaStatistics::State::planning
                                           : PlannedArenaStatistics::State::learning);
    }

    PlannedArena& arena_;
    PlannedArenaOptions options_;
    MemoryPool& pool_;
    const limits::HeldBudget budget_;
    // Shared with the plans, which may outlive the arena.
    std::shared_ptr<planned::OwnedPlannedRecord> record_;
    statistics::PlannedTotals& totals_ = record_->totals();

    // For the owner only.
    bool in_iteration_ = false;
    bool has_turns_ = false;  // in the iteration: the plan has memory and serves
    // The budget of the scope in which the iteration began. If it ended, another may be taken for
    // it.
    const void* scope_ = nullptr;
    const void* owner_ = nullptr;      // address of a thread-local variable of the owner
    std::uint64_t missed_before_ = 0;  // misses when the iteration began
    planned::ServedPlans plans_{*record_, mutex_};
    std::unique_ptr<planned::Follower> follower_;  // null: no plan
    std::shared_ptr<planned::PlanningJob> job_;    // null: no planning in progress
    planned::Drift drift_;
    unsigned failures_ = 0;     // consecutive failures to get a plan
    unsigned idle_iterations_;  // iterations left without learning, at first or after a failure

    planned::PoolRequests requests_{mutex_, totals_, arena_.first_owner_,
                                    options_.learn_iterations};

    // The last member: it is registered, so frees of other arenas' blocks reach it until it ends.
    Server server_{*this};
};

}  // namespace tensorpool::detail
