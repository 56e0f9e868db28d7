#include "plan/planned_state.hpp"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <optional>

#include <tensorpool/serve_scope.hpp>

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
        planned_arenas->for_each([](PlannedState& arena) { arena.forget_threads(); });
        after_fork();
    });

[[noreturn]] void refuse_file(const std::string& path) {
    throw std::system_error(errno, std::generic_category(), "tensorpool: plan file '" + path + "'");
}

PlannedState::Server& server_for(PlannedState& state, std::size_t min_bytes) {
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
    // Behind the constructors of static arenas, so that it runs before their destructors.
    static constinit std::atomic<bool> watches_exit = false;
    if (!watches_exit.exchange(true, std::memory_order_relaxed)) {
        (void)std::atexit([] { planned::is_exiting.store(true, std::memory_order_relaxed); });
    }
    return state.server();
}

}  // namespace
}  // namespace tensorpool::detail

namespace tensorpool {

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
    if (!out) detail::refuse_file(path);
    save(out);
}

void PlannedArena::save(std::ostream& out) const {
    state_->save(out);
}

void PlannedArena::load(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    if (!in) detail::refuse_file(path);
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
    Serving(detail::PlannedState::Server& server, std::size_t min_bytes) noexcept
        : now_{min_bytes - 1, &server}, server_(server), thread_(now_) {}

    detail::PlannedState::Server& server() const noexcept { return server_; }
    std::size_t min_bytes() const noexcept { return now_.max_unserved_bytes + 1; }
    void pause() noexcept { thread_.reset(); }
    void resume() noexcept {
        if (!thread_) thread_.emplace(now_);
    }

private:
    const kinds::Serving now_;
    detail::PlannedState::Server& server_;
    std::optional<kinds::ServingThread> thread_;  // none while it is paused
};

ServeScope::ServeScope(PlannedArena& arena, std::size_t min_bytes) {
    detail::PlannedState::Server& server = detail::server_for(*arena.state_, min_bytes);
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
    detail::PlannedState::Server& server = serving_->server();
    serving_ = nullptr;
    const kinds::ServingThread paused({});
    server.end_iteration();
}

void ServeScope::pause() noexcept {
    serving_->pause();
}

void ServeScope::resume() noexcept {
    serving_->resume();
}

JoinServeScope::JoinServeScope(const ServeScope& scope)
    : serving_(std::make_unique<ServeScope::Serving>(scope.serving_->server(),
                                                     scope.serving_->min_bytes())) {}

JoinServeScope::~JoinServeScope() = default;

}  // namespace tensorpool
