#include "plan/planner/shrink.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "plan/planner/exact_search.hpp"
#include "plan/planner/lower_bound.hpp"
#include "plan/planner/repack.hpp"

namespace tensorpool::planner {
namespace {

// The first round takes about 50 ms, so that a short budget tries more than one capacity. Rounds
// grow by steps, not by the remaining time, so a search that ends by itself is deterministic.
constexpr std::uint64_t first_round_steps = std::uint64_t{1} << 15;
constexpr std::uint64_t round_growth = 4;
constexpr int capacities_a_round = 8;

class Shrinking {
public:
    Shrinking(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
              Work& work, Candidate& best)
        : problem_(problem),
          granule_(granule(problem)),
          proven_(proven_bytes),
          enough_(enough_bytes),
          work_(work),
          best_(best) {}

    std::uint64_t run() {
        if (repack(problem_, target(), work_, best_.packing)) best_.method = PlanMethod::repacking;
        for (std::uint64_t steps = first_round_steps; !done(); steps = grown(steps)) round(steps);
        return proven_;
    }

private:
    std::uint64_t peak() const { return best_.packing.peak_bytes; }
    std::uint64_t target() const { return std::max(proven_, enough_); }
    // `capacity` may be `enough_bytes`, which need not be a multiple of the granule.
    std::uint64_t next_above(std::uint64_t capacity) const {
        return (capacity / granule_ + 1) * granule_;
    }
    bool done() const { return peak() <= target() || work_.over() || too_large_; }

    static std::uint64_t grown(std::uint64_t steps) {
        return steps > UINT64_MAX / round_growth ? UINT64_MAX : steps * round_growth;
    }

    /// Spends most of the work on the target. The rest goes to capacities above it, each halfway
    /// between the highest undecided one and the current peak.
    void round(std::uint64_t steps) {
        attempt(target(), steps);
        std::uint64_t undecided = target();
        for (int i = 0; i < capacities_a_round && !done(); ++i) {
            const std::uint64_t between = (peak() - undecided) / granule_ / 2 * granule_;
            if (between == 0) return;
            const std::uint64_t capacity = undecided + between;
            attempt(capacity, steps / round_growth);
            undecided = std::max(target(), peak() <= capacity ? undecided : capacity);
        }
    }

    void attempt(std::uint64_t capacity, std::uint64_t steps) {
        Work part = work_.part(steps);
        PackingSearch& search = search_for(capacity);
        const SearchEnd end = search.resume(part);
        too_large_ = end == SearchEnd::stopped && part.steps() == 0;
        work_.spend(part);
        if (end == SearchEnd::refuted) proven_ = std::max(proven_, next_above(capacity));
        if (end == SearchEnd::found) best_ = {search.packing(), PlanMethod::exact};
    }

    // The search for the target resumes where it was stopped. The others are short and kept only
    // while the capacity stays the same.
    PackingSearch& search_for(std::uint64_t capacity) {
        std::unique_ptr<PackingSearch>& search = capacity == target() ? to_target_ : between_;
        if (!search || search->capacity() != capacity) {
            search = std::make_unique<PackingSearch>(problem_, capacity);
        }
        return *search;
    }

    const Problem& problem_;
    std::uint64_t granule_;
    std::uint64_t proven_;
    std::uint64_t enough_;
    Work& work_;
    Candidate& best_;
    std::unique_ptr<PackingSearch> to_target_;
    std::unique_ptr<PackingSearch> between_;
    bool too_large_ = false;  ///< the problem is too large for a search: it did not take a step
};

}  // namespace

std::uint64_t shrink(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
                     Work& work, Candidate& best) {
    return Shrinking(problem, proven_bytes, enough_bytes, work, best).run();
}

}  // namespace tensorpool::planner
