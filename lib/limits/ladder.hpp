#pragma once

#include <atomic>
#include <thread>

#include "limits/budget_request.hpp"

namespace tensorpool::limits {

/// What a request lacks, as the rungs of the ladder see it.
struct Lack {
    /// The budget that refused the request, or nullptr if anything helps that its requester keeps,
    /// or, without `kept`, that any pool keeps.
    BudgetNode* budget = nullptr;
    /// The bytes that are still missing in the budget.
    std::size_t bytes = SIZE_MAX;
    /// The request that the budget refused.
    BudgetRequest* request = nullptr;
    /// What the requester keeps, in the form that its layer and that layer's rungs know; or
    /// nullptr.
    void* kept = nullptr;
    /// False if a rung left something because another thread was using it.
    bool is_all = true;
};

/// A step before a request is refused: something that gives back memory which the request may then
/// get.
struct Rung {
    const char* name;
    /// Returns the bytes by which the charge of `lack.budget` fell, or which the system got. Called
    /// by any thread, which holds no lock, and also in children that were made without the handlers
    /// of a fork.
    std::size_t (*give)(Lack& lack) noexcept;
};

/// The steps before any refusal, in the order in which they are taken. The layers above set them,
/// before they make the first request. Takes no lock and allocates nothing.
class Ladder {
public:
    static constexpr unsigned positions = 8;

    constexpr Ladder() noexcept = default;
    /// Makes a ladder whose last rung is there from the start.
    explicit constexpr Ladder(const Rung& last) noexcept
        : rungs_{nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &last} {}

    /// Sets the rung at a position, always to the same one. Release: pairs with `climb`.
    void set(unsigned position, const Rung& rung) noexcept {
        rungs_[position].store(&rung, std::memory_order_release);
    }
    /// Climbs until the rungs gave the bytes that `lack` states. Returns what they gave.
    std::size_t climb(Lack& lack) const noexcept;
    /// Climbs for what the requester keeps, and calls `retry`, until it returns true or nothing
    /// more is given. Then does so for the budget that refused, if one did. Returns whether `retry`
    /// returned true.
    template <class Retry>
    bool climb(void* kept, BudgetRequest& request, Retry retry) const noexcept {
        // Threads that are inside a slow path keep what they have until they are done.
        constexpr unsigned max_tries = 16;
        do {
            for (unsigned tried = 0; tried != max_tries; ++tried) {
                Lack lack{.kept = kept};
                climb(lack);
                if (retry()) return true;
                if (lack.is_all) break;
                std::this_thread::yield();
            }
        } while (request.may_retry());
        return false;
    }

    /// For a request that the system refused, not a limit that was set: climbs for what all
    /// pools of the process keep, unless all that is committed would not suffice. Returns whether
    /// that was anything.
    bool gives_for(const base::Refusal& refusal) const noexcept;

private:
    std::atomic<const Rung*> rungs_[positions] = {};
};

/// Returns the ladder of the process. Its last rung asks the holders of budgets.
Ladder& ladder() noexcept;

}  // namespace tensorpool::limits
