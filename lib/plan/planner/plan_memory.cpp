#include <optional>

#include "base/text.hpp"
#include "plan/planner/exact_search.hpp"
#include "plan/planner/portfolio.hpp"

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

// If a capacity can be reached at all, it mostly takes fewer moves than there are buffers
// (perf/plan.cpp).
constexpr std::uint64_t moves_a_buffer = 2;
constexpr std::uint64_t min_moves = 10'000;
// Each capacity removes one quarter of the distance between the peak and `enough_bytes`.
constexpr std::uint64_t part_of_distance = 4;
// A cost is a weight times a burden, below 2^40. Sums over fewer than 2^20 buffers cannot overflow;
// a sum that does only makes a worse choice.
constexpr double max_weight = 1U << 24;
constexpr std::uint64_t max_burden = 1U << 16;
// Buffers of a window that are examined in one step of the search, which takes about 1 µs.
constexpr std::size_t buffers_a_step = 512;

/// Returns the weight of each buffer: bytes × time, as an integer, so that sums are the same on
/// every machine.
std::vector<std::uint64_t> weights_of(const Problem& problem) {
    std::vector<double> areas;
    areas.reserve(problem.buffers.size());
    for (const Buffer& buffer : problem.buffers) {
        areas.push_back(static_cast<double>(buffer.bytes) * (buffer.end - buffer.begin));
    }
    const double max_area = *std::max_element(areas.begin(), areas.end());
    std::vector<std::uint64_t> weights;
    weights.reserve(areas.size());
    for (const double area : areas) {
        weights.push_back(1 + static_cast<std::uint64_t>(area / max_area * max_weight));
    }
    return weights;
}

/// A buffer that is in the way of another, and the cost of moving it.
struct Obstacle {
    Placed placed;
    std::uint64_t cost;
};
/// The end of an obstacle. The comparison makes the lowest end the top of a heap.
struct Top {
    std::uint64_t at;
    std::uint64_t cost;
    friend bool operator<(const Top& a, const Top& b) { return a.at > b.at; }
};

class Repacking {
public:
    Repacking(const Problem& problem, Work& work, Packing& packing)
        : problem_(problem),
          work_(work),
          packing_(packing),
          windows_(problem),
          weights_(weights_of(problem)),
          unplaced_(Lighter{&weights_}) {
        for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) windows_.add(placed(i));
    }

    /// Moves buffers until all of them lie below `capacity`. If it returns false, the packing is
    /// incomplete.
    bool fit_into(std::uint64_t capacity) {
        capacity_ = capacity;
        burdens_.assign(problem_.buffers.size(), 1);
        for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i) {
            if (placed(i).top > capacity) take_out(placed(i));
        }
        std::uint64_t moves = min_moves + moves_a_buffer * std::uint64_t{problem_.buffers.size()};
        while (!unplaced_.empty()) {
            const std::uint32_t index = unplaced_.top();
            unplaced_.pop();
            if (moves-- == 0 || !place_again(index)) return false;
        }
        packing_.peak_bytes = highest_top();
        return true;
    }

private:
    struct Lighter {
        const std::vector<std::uint64_t>* weights;
        bool operator()(std::uint32_t a, std::uint32_t b) const {
            return (*weights)[a] != (*weights)[b] ? (*weights)[a] < (*weights)[b] : a > b;
        }
    };

    Placed placed(std::uint32_t index) const {
        const Buffer& buffer = problem_.buffers[index];
        const std::uint64_t offset = packing_.offsets[index];
        return {buffer.begin, buffer.end, offset, offset + buffer.bytes, index};
    }
    std::uint64_t highest_top() const {
        std::uint64_t highest = 0;
        for (std::uint32_t i = 0; i < problem_.buffers.size(); ++i) {
            highest = std::max(highest, placed(i).top);
        }
        return highest;
    }
    void take_out(const Placed& one) {
        windows_.remove(one);
        unplaced_.push(one.index);
    }
    void put(std::uint32_t index, std::uint64_t offset) {
        packing_.offsets[index] = offset;
        windows_.add(placed(index));
    }
    bool take_steps_for(const OffsetList& window) {
        for (std::size_t seen = 0; seen <= window.size(); seen += buffers_a_step) {
            if (!work_.step()) return false;
        }
        return true;
    }

    bool place_again(std::uint32_t index) {
        const Buffer& buffer = problem_.buffers[index];
        const OffsetList& window = windows_.around(buffer);
        if (!take_steps_for(window)) return false;
        const std::uint64_t offset = window.offset_for(buffer, Gap::first);
        if (offset + buffer.bytes <= capacity_) {
            put(index, offset);
            return true;
        }
        burdens_[index] = std::min(2 * burdens_[index], max_burden);
        find_obstacles(window, buffer);
        const std::optional<std::uint64_t> cheapest = cheapest_offset(buffer);
        if (!cheapest) return false;
        make_room(*cheapest, buffer.bytes);
        put(index, *cheapest);
        return true;
    }

    void find_obstacles(const OffsetList& window, const Buffer& buffer) {
        obstacles_.clear();
        window.visit_alive(buffer, [&](const Placed& one) {
            obstacles_.push_back({one, weights_[one.index] * burdens_[one.index]});
        });
    }

    /// Returns the offset with the cheapest obstacles, out of 0 and the offsets right above each
    /// obstacle; nullopt if the buffer is larger than the capacity.
    std::optional<std::uint64_t> cheapest_offset(const Buffer& buffer) {
        std::optional<std::uint64_t> cheapest;
        std::uint64_t min_cost = UINT64_MAX;
        std::uint64_t cost = 0;
        tops_.clear();
        auto next = obstacles_.begin();
        for (std::uint64_t offset = 0; offset + buffer.bytes <= capacity_;) {
            for (; next != obstacles_.end() && next->placed.bottom < offset + buffer.bytes;
                 ++next) {
                cost += next->cost;
                tops_.push_back({next->placed.top, next->cost});
                std::push_heap(tops_.begin(), tops_.end());
            }
            if (cost < min_cost) {
                min_cost = cost;
                cheapest = offset;
            }
            if (tops_.empty()) break;
            offset = base::align_up(tops_.front().at, buffer.alignment);
            for (; !tops_.empty() && tops_.front().at <= offset; tops_.pop_back()) {
                cost -= tops_.front().cost;
                std::pop_heap(tops_.begin(), tops_.end());
            }
        }
        return cheapest;
    }

    void make_room(std::uint64_t offset, std::uint64_t bytes) {
        for (const Obstacle& obstacle : obstacles_) {
            const Placed& one = obstacle.placed;
            if (one.bottom < offset + bytes && one.top > offset) take_out(one);
        }
    }

    const Problem& problem_;
    Work& work_;
    Packing& packing_;
    TimeWindows windows_;
    std::uint64_t capacity_ = 0;
    std::vector<std::uint64_t> weights_;
    std::vector<std::uint64_t> burdens_;  ///< how expensive each buffer is to move
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, Lighter> unplaced_;
    std::vector<Obstacle> obstacles_;  ///< of the current buffer, the lowest first
    std::vector<Top> tops_;            ///< a heap of the obstacles at the current offset
};

}  // namespace

std::uint64_t shrink(const Problem& problem, std::uint64_t proven_bytes, std::uint64_t enough_bytes,
                     Work& work, Candidate& best) {
    return Shrinking(problem, proven_bytes, enough_bytes, work, best).run();
}

bool repack(const Problem& problem, std::uint64_t enough_bytes, Work& work, Packing& packing) {
    const std::uint64_t before = packing.peak_bytes;
    Packing trial = packing;
    Repacking repacking(problem, work, trial);
    while (packing.peak_bytes > enough_bytes) {
        const std::uint64_t distance = packing.peak_bytes - enough_bytes;
        const std::uint64_t less = base::ceil_divide(distance, part_of_distance);
        if (!repacking.fit_into(packing.peak_bytes - less)) break;
        packing = trial;
    }
    return packing.peak_bytes < before;
}

}  // namespace tensorpool::planner

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
