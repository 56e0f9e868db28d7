#include <tensorpool/serve_scope.hpp>

#include <stdexcept>
#include <string>

#include "plan/plan_server.hpp"
#include "plan/planned_state.hpp"

namespace tensorpool {
namespace {

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
