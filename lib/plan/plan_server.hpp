#pragma once

#include "kinds/block_server.hpp"
#include "plan/served_plan.hpp"

namespace tensorpool::detail {

class PlannedState;

/// Serves a planned arena's plan to threads that allocate from the global pool (ServeScope). Its
/// lock orders the requests of all threads that have joined a scope.
class PlanServer final : public kinds::BlockServer {
public:
    explicit PlanServer(PlannedState& state) noexcept : state_(state) {
        kinds::block_servers().enter(*this);
    }
    /// The state must have forgotten its noted blocks (`forget_noted`).
    ~PlanServer() { kinds::block_servers().leave(*this); }

    /// Returns whether a thread was served at any time.
    bool is_used() const noexcept { return is_used_; }
    void begin_iteration();
    void end_iteration() noexcept;
    /// Borrows the memory of a plan whose iteration begins, unless it is still there. Returns false
    /// if there is not enough.
    bool prepare(planned::ServedPlan& plan) noexcept;
    /// From now on, the plan has no iteration, and its memory may be taken if no block is in use.
    void rest(planned::ServedPlan& plan) noexcept;
    /// The plan is about to be used or dropped.
    void end_rest() noexcept;
    /// From now on, frees of the pool's blocks are not noted.
    void forget_noted() noexcept;

    void* serve(const kinds::Request& request, pages::SlowPath& path) noexcept override;
    bool note_free(void* p) noexcept override;
    void give_back_idle(std::size_t wanted) noexcept override;

    // For fork handlers.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    void set_resting(planned::ServedPlan* plan) noexcept;

    PlannedState& state_;
    std::mutex mutex_;
    bool is_used_ = false;
    // The plan whose memory may be taken, and the bytes that requests lacked since it may. Guarded
    // by the lock of `block_servers`.
    planned::ServedPlan* resting_ = nullptr;
    std::size_t lacked_bytes_ = 0;
};

}  // namespace tensorpool::detail
