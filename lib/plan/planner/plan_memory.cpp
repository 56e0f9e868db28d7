#include <numeric>
#include <utility>

#include "base/text.hpp"
#include "plan/planner/portfolio.hpp"

namespace tensorpool {
namespace {

using planner::Candidate;
using planner::Section;
using planner::Work;

using TimePoint = Work::Clock::time_point;

TimePoint deadline_of(const PlanOptions& options) {
    if (options.budget.count() <= 0) return TimePoint::max();  // greedy orders only, no search
    const TimePoint now = Work::Clock::now();
    return now + std::min<Work::Clock::duration>(options.budget, TimePoint::max() - now);
}

/// Plans each section separately. The section that needs the most bytes determines the peak, so the
/// others need not go below what is proven to be needed for that one.
class Planning {
public:
    Planning(std::vector<Section> sections, std::uint64_t enough_bytes)
        : sections_(std::move(sections)), enough_(enough_bytes) {
        for (const Section& section : sections_) {
            const std::uint64_t alive = planner::lower_bound(section.problem);
            const std::uint64_t step = planner::granule(section.problem);
            needed_.push_back(base::ceil_divide(alive, step) * step);
            lower_bound_ = std::max(lower_bound_, alive);
            proven_ = std::max(proven_, needed_.back());
        }
    }

    void try_greedy(TimePoint deadline) {
        for (const Section& section : sections_) {
            best_.push_back(planner::best_greedy(section.problem, goal(), deadline));
        }
    }

    void search(Work work) {
        for (const std::size_t index : highest_first()) {
            if (work.over() || best_[index].packing.peak_bytes <= goal()) return;
            const std::uint64_t needed = planner::shrink(sections_[index].problem, needed_[index],
                                                         goal(), work, best_[index]);
            proven_ = std::max(proven_, needed);
        }
    }

    void write(MemoryPlan& plan) const {
        plan.lower_bound_bytes = lower_bound_;
        for (std::size_t i = 0; i < sections_.size(); ++i) {
            const planner::Packing& packing = best_[i].packing;
            for (std::size_t j = 0; j < packing.offsets.size(); ++j) {
                plan.offsets[sections_[i].origins[j]] = packing.offsets[j];
            }
            if (packing.peak_bytes <= plan.peak_bytes) continue;
            plan.peak_bytes = packing.peak_bytes;
            plan.method = best_[i].method;
        }
        plan.optimal = plan.peak_bytes <= proven_;
    }

private:
    std::uint64_t goal() const { return std::max(proven_, enough_); }

    std::vector<std::size_t> highest_first() const {
        std::vector<std::size_t> order(sections_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, std::greater(),
                                 [&](std::size_t i) { return best_[i].packing.peak_bytes; });
        return order;
    }

    std::vector<Section> sections_;
    std::vector<std::uint64_t> needed_;  ///< for each section: bytes proven before any search
    std::vector<Candidate> best_;        ///< for each section
    std::uint64_t enough_;
    std::uint64_t lower_bound_ = 0;
    std::uint64_t proven_ = 0;  ///< bytes that every packing of all sections needs
};

}  // namespace

const char* to_string(PlanMethod method) noexcept {
    return base::text_of({"none", "by size", "by class", "by area", "by lifetime", "by conflicts",
                          "by time", "repacking", "exact"},
                         method, "none");
}

MemoryPlan plan_memory(std::span<const TensorLifetime> lifetimes, const PlanOptions& options) {
    planner::check_lifetimes(lifetimes);
    MemoryPlan plan;
    plan.offsets.resize(lifetimes.size());
    const TimePoint deadline = deadline_of(options);
    Planning planning(planner::compress(lifetimes), options.enough_bytes);
    planning.try_greedy(deadline);
    if (options.budget.count() > 0) planning.search(Work(deadline, options.max_steps));
    planning.write(plan);
    return plan;
}

}  // namespace tensorpool
