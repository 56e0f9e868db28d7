#pragma once

#include <tensorpool/planned_arena.hpp>

#include "plan/plan_server.hpp"
#include "plan/pool_requests.hpp"

namespace tensorpool::planned {

/// Throws std::invalid_argument if an option is invalid. The message names the arena, the option,
/// what was found and what was expected.
void validate(const PlannedArenaOptions& options);

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
    /// Resets all counts.
    void forget() noexcept { in_a_row_ = doublings_ = 0; }

private:
    static constexpr unsigned max_doublings = 6;
    double tolerated_;
    unsigned iterations_;
    unsigned in_a_row_ = 0;
    unsigned doublings_ = 0;
};

}  // namespace tensorpool::planned

namespace tensorpool::detail {

/// The implementation of a PlannedArena, except for the fields that each served request reads. Its
/// states follow in a cycle: *learning* records the requests that the pool serves, *planning* makes
/// a plan, here or on the executor, and *serving* uses the plan until it is given up.
class PlannedState {
public:
    PlannedState(PlannedArena& arena, PlannedArenaOptions options);
    ~PlannedState();

    const PlannedArenaOptions& options() const noexcept { return options_; }
    MemoryPool& pool() const noexcept { return pool_; }
    PlannedArenaStatistics statistics() const noexcept { return record_->statistics(); }

    // For the owner only.
    void begin_iteration();
    void end_iteration();
    void relearn();
    /// Throws std::logic_error if there is no plan to save.
    void require_plan() const;
    void save(std::ostream& out) const;
    void load(std::istream& in, const std::string& file);
    std::uint64_t sequence_checksum() const;
    void* allocate(std::size_t bytes, std::size_t alignment);
    void* try_allocate(std::size_t bytes, std::size_t alignment) noexcept;

    /// Frees a block of the pool. Any thread.
    void deallocate(void* p) noexcept;

    /// Returns the server for threads that allocate from the global pool.
    PlanServer& server() noexcept { return server_; }
    /// Serves a request that a thread made of the global pool, or returns the block that `get`
    /// allocates from it, or nullptr. REQUIRES: the lock of the server is held.
    template <class Get>
    void* serve_for(Pool& pool, std::size_t bytes, std::size_t alignment, Get get) noexcept;

    /// Taken around a fork, so that no thread is within an update of the block table.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }
    /// Drops the planning job. Called in the child of a fork, where the executor's thread is gone.
    void forget_job() noexcept;
    PlannedState* next_of_all = nullptr;  ///< link of the registry, under its mutex

private:
    friend class PlanServer;
    using Turn = planned::Follower::Turn;

    // Requests that the inline path does not serve.
    Turn find_turn(std::size_t bytes, std::size_t alignment) noexcept;
    void* serve(const PlannedBuffer& buffer) noexcept;
    template <class Get>
    void* serve_or(std::size_t bytes, std::size_t alignment, Get get);

    // Transitions between the states.
    void end_served() noexcept;
    void end_learned() noexcept;
    void plan_learned();
    void look_for_plan() noexcept;
    void adopt(std::unique_ptr<planned::ServedPlan> plan,
               std::unique_ptr<planned::Follower> follower) noexcept;
    void note_failure() noexcept;
    void drop_plan() noexcept;
    void forget() noexcept;
    void show_state() noexcept;

    PlannedArena& arena_;
    PlannedArenaOptions options_;
    MemoryPool& pool_;
    const limits::HeldBudget budget_;
    // Shared with the plans, which may outlive the arena.
    std::shared_ptr<planned::OwnedPlannedRecord> record_;
    statistics::PlannedTotals& totals_ = record_->totals();

    // For the owner only.
    bool in_iteration_ = false;
    bool has_turns_ = false;           // in the iteration: the plan has memory and serves
    const void* owner_ = nullptr;      // address of a thread-local variable of the owner
    std::uint64_t missed_before_ = 0;  // misses when the iteration began
    planned::ServedPlans plans_{*record_, mutex_};
    std::unique_ptr<planned::Follower> follower_;  // null: no plan
    std::shared_ptr<planned::PlanningJob> job_;    // null: no planning in progress
    planned::Drift drift_;
    unsigned failures_ = 0;     // consecutive failures to get a plan
    unsigned idle_iterations_;  // iterations left without learning, at first or after a failure

    // Protects the state of blocks that do not come from the current plan. The pool is called
    // without the lock.
    std::mutex mutex_;
    planned::PoolRequests requests_{mutex_, totals_, arena_.first_owner_,
                                    options_.learn_iterations};

    // The last member: it is registered, so frees of other arenas' blocks reach it until it ends.
    PlanServer server_{*this};
};

template <class Get>
void* PlannedState::serve_for(Pool& pool, std::size_t bytes, std::size_t alignment,
                              Get get) noexcept {
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

}  // namespace tensorpool::detail
