#include "plan/planned_state.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include "events/timeline.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::planned {
namespace {

using detail::PlannedState;

constinit base::NeverDestroyed<base::Registry<PlannedState>> the_registry;

/// Returns the registry of all planned arenas in the process. The fork handlers take the locks of
/// all of them, so that the child finds none locked.
base::Registry<PlannedState>& planned_registry() noexcept {
    return the_registry.get();
}

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

}  // namespace tensorpool::planned

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

std::uint64_t missed(const statistics::PlannedTotals& totals) noexcept {
    const auto read = [](const Counter& counter) {
        return counter.load(std::memory_order_relaxed);
    };
    return read(totals.too_large) + read(totals.out_of_order) + read(totals.unknown) +
           read(totals.still_in_use);
}

void report_blocks_in_use(const PlannedArenaOptions& options,
                          const PlannedArenaStatistics& now) noexcept {
    const std::uint64_t bytes = now.in_use_bytes + now.pool_in_use_bytes;
    if (bytes == 0) return;
    events::report_misuse({.kind = events::MisuseKind::leak,
                           .size = static_cast<std::size_t>(bytes),
                           .owner = options.name},
                          "planned arena '%s': destroyed with blocks of %s in use; expected "
                          "none",
                          options.name.c_str(), base::BytesText(bytes).c_str());
}

void require_outside(bool in_iteration, const std::string& arena, const char* call) {
    if (!in_iteration) return;
    throw std::logic_error("tensorpool: planned arena '" + arena + "': " + call +
                           ": an iteration is under way; expected none");
}

[[noreturn]] void refuse_plan(const std::string& arena, const PlannedArenaStatistics& now,
                              std::uint64_t bytes, const pages::SlowPath& path) {
    const limits::BudgetLines lines(path.budget);
    throw AllocationError(arena.c_str(), {.asked = bytes,
                                          .in_use = now.in_use_bytes,
                                          .capacity = now.capacity_bytes,
                                          .limit = path.refusal.limit,
                                          .limit_bytes = path.refusal.limit_bytes,
                                          .details = lines.c_str()});
}

}  // namespace

PlannedState::PlannedState(PlannedArena& arena, PlannedArenaOptions options)
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
    planned::planned_registry().enter(*this);
}

// Blocks that callers of the global pool hold stay valid.
PlannedState::~PlannedState() {
    if (server_.is_used()) {
        server_.forget_noted();
        drop_plan();
        planned::orphaned_plans().add(plans_.take_orphans());
    } else if (base::checks_sizes(options_.checks)) {
        report_blocks_in_use(options_, statistics());
    }
    requests_.return_all(pool_);
    planned::planned_registry().leave(*this);
}

// Relaxed: a freeing thread compares the first owner only with itself.
void PlannedState::begin_iteration() {
    require_outside(in_iteration_, options_.name, "begin_iteration");
    server_.end_rest();
    owner_ = &thread_table;
    const void* no_owner = nullptr;
    arena_.first_owner_.compare_exchange_strong(no_owner, owner_, std::memory_order_relaxed);
    if (auto* const plan = plans_.current())
        plan->set_first_owner(arena_.first_owner_.load(std::memory_order_relaxed));
    plans_.release_retired();
    look_for_plan();
    in_iteration_ = true;
    missed_before_ = missed(totals_);
    // Nothing would lie between the blocks of a plan. The pool protects each block, if hardened.
    if (options_.checks == Checks::hardened) return;
    if (auto* const plan = plans_.current()) {
        // Without memory, the pool serves this iteration.
        has_turns_ = server_.prepare(*plan);
        if (has_turns_) arena_.next_ = plan->tables().buffers;
        plans_.show_capacity();
    } else if (idle_iterations_ != 0) {
        --idle_iterations_;
    } else if (job_ == nullptr) {
        requests_.begin_iteration();
    }
}

void PlannedState::end_iteration() {
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

void PlannedState::end_served() noexcept {
    if (!std::exchange(has_turns_, false)) return;
    follower_->end_iteration(*std::exchange(arena_.next_, &no_turn));
    const std::uint64_t missed_now = missed(totals_) - missed_before_;
    const LearnedPlan& plan = plans_.current()->plan();
    if (!drift_.note_iteration(missed_now, plan.requests.size())) return;
    drift_.note_end();
    events::write_entry(EntryKind::drift, LimitKind::none, plan.peak_bytes, options_.name);
    drop_plan();
}

void PlannedState::end_learned() noexcept {
    try {
        if (requests_.end_iteration()) plan_learned();
    } catch (...) {  // the caller's executor may throw anything
        note_failure();
    }
}

void PlannedState::plan_learned() {
    job_ = std::make_shared<planned::PlanningJob>(requests_.learned(), options_.planning_budget);
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

void PlannedState::note_failure() noexcept {
    job_ = nullptr;
    idle_iterations_ = (1u << failures_) - 1;
    failures_ = std::min(failures_ + 1, max_failures);
    requests_.forget_learned();
    show_state();
}

void PlannedState::forget_job() noexcept {
    job_ = nullptr;
    show_state();
}

void PlannedState::relearn() {
    require_outside(in_iteration_, options_.name, "relearn");
    drop_plan();
    forget();
}

void PlannedState::forget() noexcept {
    job_ = nullptr;
    drift_.forget();
    failures_ = idle_iterations_ = 0;
    requests_.forget_learned();
    show_state();
}

void PlannedState::require_plan() const {
    if (plans_.current() != nullptr) return;
    throw std::logic_error("tensorpool: planned arena '" + options_.name +
                           "': save: no plan serves; expected one");
}

void PlannedState::save(std::ostream& out) const {
    require_plan();
    planned::write_plan(out, plans_.current()->plan());
}

void PlannedState::load(std::istream& in, const std::string& file) {
    require_outside(in_iteration_, options_.name, "load");
    LearnedPlan plan = planned::read_plan(in, file);
    const std::uint64_t bytes = plan.peak_bytes;
    pages::SlowPath path;
    auto served = ServedPlan::make(std::move(plan), PoolAccess::of(pool_), budget_, path);
    if (served == nullptr) refuse_plan(options_.name, statistics(), bytes, path);
    auto follower = std::make_unique<planned::Follower>(served->tables());
    drop_plan();
    forget();
    adopt(std::move(served), std::move(follower));
}

std::uint64_t PlannedState::sequence_checksum() const {
    const ServedPlan* const plan = plans_.current();
    return plan != nullptr ? planned::checksum_of(plan->plan().requests) : 0;
}

void PlannedState::drop_plan() noexcept {
    if (plans_.current() != nullptr) {
        server_.end_rest();
        follower_ = nullptr;
        arena_.tables_ = nullptr;
        plans_.drop();
    }
    show_state();
}

void PlannedState::show_state() noexcept {
    if (plans_.current() != nullptr) return record_->set_state(State::serving);
    record_->set_state(job_ != nullptr ? State::planning : State::learning);
}

}  // namespace tensorpool::detail

namespace tensorpool::planned {

void validate(const PlannedArenaOptions& options) {
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

}  // namespace tensorpool::planned

namespace tensorpool::detail {
namespace {

// Requests that the plan serves are not checked, because the check would slow down each of them.
void check_thread(const PlannedArenaOptions& options, const void* owner) noexcept {
    if (!base::checks_calls(options.checks) || owner == &thread_table) return;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::wrong_thread, .owner = options.name},
        "allocate: planned arena '%s' belongs to the thread that began its iteration, and another "
        "one used it",
        options.name.c_str());
}

}  // namespace

// What the pool serves for this arena is not served by another arena's plan.
void* PlannedState::allocate(std::size_t bytes, std::size_t alignment) {
    const kinds::ServingThread paused({});
    return serve_or(bytes, alignment, [&] { return pool_.allocate(bytes, alignment); });
}

void* PlannedState::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    const kinds::ServingThread paused({});
    try {
        return serve_or(bytes, alignment, [&] { return pool_.try_allocate(bytes, alignment); });
    } catch (const std::exception&) {
        return nullptr;  // no memory for the record of the block
    }
}

// A request that fails leaves the position in the sequence unchanged.
template <class Get>
void* PlannedState::serve_or(std::size_t bytes, std::size_t alignment, Get get) {
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

PlannedState::Turn PlannedState::find_turn(std::size_t bytes, std::size_t alignment) noexcept {
    if (!in_iteration_ || !has_turns_)
        return {planned::Follower::Answer::left_to_pool, nullptr, arena_.next_};
    const Turn turn = follower_->find(*arena_.next_, bytes, alignment);
    arena_.next_ = turn.next;
    return turn;
}

void* PlannedState::serve(const PlannedBuffer& buffer) noexcept {
    plans_.current()->tables().hand_out(buffer);
    add(totals_.served, 1);
    add(totals_.served_bytes, buffer.bytes);
    return buffer.address;
}

void PlannedState::deallocate(void* p) noexcept {
    if (requests_.note_free(p)) return pool_.deallocate(p);
    events::report_misuse(
        {.kind = events::MisuseKind::foreign_free, .pointer = p, .owner = options_.name},
        "planned arena '%s': deallocate: %p is not a block in use of this "
        "arena",
        options_.name.c_str(), p);
}

}  // namespace tensorpool::detail

namespace tensorpool {
namespace {

[[noreturn]] void refuse_file(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), "tensorpool: plan file '" + path + "'");
}

}  // namespace

PlannedArena::PlannedArena(PlannedArenaOptions options) {
    state_ = std::make_unique<detail::PlannedState>(*this, std::move(options));
}

PlannedArena::~PlannedArena() = default;

void PlannedArena::begin_iteration() {
    state_->begin_iteration();
}

void PlannedArena::end_iteration() {
    state_->end_iteration();
}

void PlannedArena::relearn() {
    state_->relearn();
}

// Opening truncates the file, so the plan is checked first.
void PlannedArena::save(const std::string& path) const {
    state_->require_plan();
    std::ofstream out(path, std::ios::binary);
    if (!out) refuse_file(path);
    save(out);
}

void PlannedArena::save(std::ostream& out) const {
    state_->save(out);
}

void PlannedArena::load(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) refuse_file(path);
    state_->load(in, path);
}

void PlannedArena::load(std::istream& in) {
    state_->load(in, "a stream");
}

std::uint64_t PlannedArena::sequence_checksum() const {
    return state_->sequence_checksum();
}

void* PlannedArena::allocate_slow(std::size_t bytes, std::size_t alignment) {
    if (!std::has_single_bit(alignment)) {
        throw std::invalid_argument("tensorpool: planned arena '" + name() +
                                    "': allocate: alignment is " + std::to_string(alignment) +
                                    " B; expected a power of two");
    }
    return bytes != 0 ? state_->allocate(bytes, alignment) : nullptr;
}

void* PlannedArena::try_allocate_slow(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes == 0 || !std::has_single_bit(alignment)) return nullptr;
    return state_->try_allocate(bytes, alignment);
}

void PlannedArena::deallocate_slow(void* p) noexcept {
    if (p != nullptr) state_->deallocate(p);
}

PlannedArenaStatistics PlannedArena::statistics() const noexcept {
    return state_->statistics();
}

const std::string& PlannedArena::name() const noexcept {
    return state_->options().name;
}

}  // namespace tensorpool
