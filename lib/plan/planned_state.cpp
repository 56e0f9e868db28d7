#include "plan/planned_state.hpp"

#include <cerrno>
#include <fstream>
#include <system_error>

#include <tensorpool/detail/saturating.hpp>
#include <tensorpool/serve_scope.hpp>

#include "limits/budgets.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::detail {
namespace {

// In the order in which the layer takes them.
void before_fork() noexcept {
    planned_arenas->lock();
    planned_arenas->for_each([](PlannedState& arena) { arena.server().lock(); });
    kinds::block_servers().lock();
    planned_arenas->for_each([](PlannedState& arena) { arena.lock(); });
    planned::orphaned_plans().lock();
}

void after_fork() noexcept {
    planned::orphaned_plans().unlock();
    planned_arenas->for_each([](PlannedState& arena) { arena.unlock(); });
    kinds::block_servers().unlock();
    planned_arenas->for_each([](PlannedState& arena) { arena.server().unlock(); });
    planned_arenas->unlock();
}

// Set while the library is loaded, before there are threads, as in the registry of arenas.
[[maybe_unused]] const bool fork_handlers_set =
    platform::set_fork_handlers(platform::ForkStage::planned, before_fork, after_fork, [] {
        planned_arenas->for_each([](PlannedState& arena) { arena.forget_job(); });
        after_fork();
    });

}  // namespace

void PlanServer::begin_iteration() {
    const std::lock_guard guard(mutex_);
    state_.begin_iteration();
    // The pool serves this iteration; it and the idle plans of other loops would add up.
    if (state_.plans_.current() == nullptr) (void)kinds::give_back_idle_plans();
}

void PlanServer::end_iteration() noexcept {
    const std::lock_guard guard(mutex_);
    state_.end_iteration();
}

void* PlanServer::serve(const kinds::Request& request, pages::SlowPath& path) noexcept {
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

bool PlanServer::note_free(void* p) noexcept {
    return state_.requests_.note_free(p);
}

void PlanServer::rest(planned::ServedPlan& plan) noexcept {
    if (!is_used() || plan.has_held()) return;
    const std::lock_guard guard(kinds::block_servers());
    set_resting(&plan);
    lacked_bytes_ = 0;
}

void PlanServer::end_rest() noexcept {
    const std::lock_guard guard(kinds::block_servers());
    set_resting(nullptr);
}

void PlanServer::set_resting(planned::ServedPlan* plan) noexcept {
    if (resting_ == nullptr && plan != nullptr) {
        kinds::idle_plan_count.fetch_add(1, std::memory_order_relaxed);
    }
    if (resting_ != nullptr && plan == nullptr) {
        kinds::idle_plan_count.fetch_sub(1, std::memory_order_relaxed);
    }
    resting_ = plan;
}

bool PlanServer::prepare(planned::ServedPlan& plan) noexcept {
    pages::SlowPath path;
    return plan.borrow_memory(path);
}

// While little is lacking, the pool grows instead: otherwise a small block between two iterations
// would lie in the plan's memory, and the plan would have to begin with fresh pages elsewhere.
void PlanServer::give_back_idle(std::size_t wanted) noexcept {
    if (resting_ == nullptr) return;
    lacked_bytes_ = sum(lacked_bytes_, wanted);
    if (lacked_bytes_ < resting_->capacity() / 4) return;
    resting_->return_memory();
    set_resting(nullptr);
    state_.plans_.show_capacity();
}

void PlanServer::forget_noted() noexcept {
    const std::lock_guard guard(kinds::block_servers());
    state_.requests_.forget_noted(PoolAccess::of(state_.pool_));
}

}  // namespace tensorpool::detail

namespace tensorpool {
namespace {

[[noreturn]] void refuse_file(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), "tensorpool: plan file '" + path + "'");
}

detail::PlanServer& server_for(detail::PlannedState& state, std::size_t min_bytes) {
    const std::string arena = "tensorpool: planned arena '" + state.options().name + "': serve: ";
    if (min_bytes < ServeScope::default_min_bytes) {
        throw std::invalid_argument(arena + "min_bytes is " + std::to_string(min_bytes) +
                                    " B; expected at least " +
                                    std::to_string(ServeScope::default_min_bytes) + " B");
    }
    if (&state.pool() != &get_global_memory_pool()) {
        throw std::invalid_argument(arena + "the arena's pool is '" + state.pool().name() +
                                    "'; expected the global pool");
    }
    return state.server();
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

class ServeScope::Serving {
public:
    Serving(detail::PlanServer& server, std::size_t min_bytes) noexcept
        : now_{min_bytes - 1, &server}, server_(server), thread_(now_) {}

    detail::PlanServer& server() const noexcept { return server_; }
    std::size_t min_bytes() const noexcept { return now_.max_unserved_bytes + 1; }

private:
    const kinds::Serving now_;
    detail::PlanServer& server_;
    const kinds::ServingThread thread_;
};

ServeScope::ServeScope(PlannedArena& arena, std::size_t min_bytes) {
    detail::PlanServer& server = server_for(*arena.state_, min_bytes);
    serving_ = std::make_unique<Serving>(server, min_bytes);
    try {
        const kinds::ServingThread paused({});
        server.begin_iteration();
    } catch (...) {
        serving_ = nullptr;
        throw;
    }
}

// The thread is no longer served when the arena plans.
ServeScope::~ServeScope() {
    detail::PlanServer& server = serving_->server();
    serving_ = nullptr;
    const kinds::ServingThread paused({});
    server.end_iteration();
}

JoinServeScope::JoinServeScope(const ServeScope& scope)
    : serving_(std::make_unique<ServeScope::Serving>(scope.serving_->server(),
                                                     scope.serving_->min_bytes())) {}

JoinServeScope::~JoinServeScope() = default;

}  // namespace tensorpool
