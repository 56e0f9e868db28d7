#pragma once

#include <cstddef>
#include <mutex>

#include "pool/block_server.hpp"

namespace tensorpool::detail {

class PlannedState;

/// Serves a planned arena's plan to threads that allocate from the global pool (ServeScope). Its
/// lock orders the requests of all threads that have joined a scope.
class PlanServer final : public BlockServer {
public:
    explicit PlanServer(PlannedState& state) noexcept : state_(state) {
        block_servers().enter(*this);
    }
    /// The state must have forgotten its noted blocks (`forget_noted`).
    ~PlanServer() { block_servers().leave(*this); }
    PlanServer(const PlanServer&) = delete;
    PlanServer& operator=(const PlanServer&) = delete;

    /// Returns whether a thread was served at any time.
    bool is_used() const noexcept { return pool_ != nullptr; }
    void begin_iteration();
    void end_iteration() noexcept;
    /// From now on, frees of the pool's blocks are not noted.
    void forget_noted() noexcept;
    /// Lets the pool give back its free memory, which includes what a learned iteration took.
    void give_back() noexcept {
        if (pool_ != nullptr) pool_->give_back_free();
    }

    void* serve(Pool& pool, std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                Pool::FirstTouch first_touch) noexcept override;
    bool note_free(void* p) noexcept override;

    // For fork handlers.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    PlannedState& state_;
    std::mutex mutex_;
    Pool* pool_ = nullptr;  // the global pool, once it was asked
};

}  // namespace tensorpool::detail
