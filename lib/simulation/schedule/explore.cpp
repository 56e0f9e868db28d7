#include <tensorpool/device/explore.hpp>

#include <exception>

#include "simulation/schedule/scheduler.hpp"

namespace tensorpool {

using namespace device;

namespace {

using Step = ScheduleDriver::Step;

bool same(const Step& a, const Step& b) noexcept {
    return a.stream == b.stream && a.position == b.position;
}

bool overlap(const MemoryRange& a, const MemoryRange& b) noexcept {
    const auto a_begin = reinterpret_cast<std::uintptr_t>(a.address);
    const auto b_begin = reinterpret_cast<std::uintptr_t>(b.address);
    return a_begin < b_begin + b.bytes && b_begin < a_begin + a.bytes;
}

bool any_overlap(const std::vector<MemoryRange>& some, const std::vector<MemoryRange>& others) {
    return std::ranges::any_of(some, [&](const MemoryRange& range) {
        return std::ranges::any_of(others, [&](auto& other) { return overlap(range, other); });
    });
}

// Whether the order of the two steps matters.
bool depend(const Step& a, const Step& b) {
    if (a.stream == b.stream) return true;
    if (a.footprint == nullptr || b.footprint == nullptr) return false;
    const Footprint& one = *a.footprint;
    const Footprint& two = *b.footprint;
    return one.opaque || two.opaque || any_overlap(one.writes, two.writes) ||
           any_overlap(one.writes, two.reads) || any_overlap(one.reads, two.writes);
}

/// Drives run after run through the tree of choices, depth first. Use: `begin`, one run, `next`,
/// repeated until `next` returns false.
///
/// A step that was tried at a point sleeps below the point's other choices until a step runs that
/// it depends on. Running it earlier would only repeat an equivalent order (sleep sets).
class Explorer final : public ScheduleDriver {
public:
    void begin() {
        depth_ = 0;
        asleep_.clear();
        redundant_ = false;
    }
    /// Moves on to the next untried choice. Returns false if none is left.
    bool next() {
        while (!path_.empty()) {
            if (advance(path_.back())) return true;
            path_.pop_back();
        }
        return false;
    }
    /// Whether this run is only an equivalent order of an earlier one.
    bool redundant() const noexcept { return redundant_; }
    std::vector<unsigned> choices() const {
        std::vector<unsigned> made;
        for (std::size_t depth = 0; depth < std::min(depth_, path_.size()); ++depth) {
            made.push_back(path_[depth].chosen);
        }
        return made;
    }

    unsigned choose_step(const std::vector<Step>& steps) override {
        if (redundant_) return 0;
        const bool is_new = depth_ == path_.size();
        const unsigned awake = first_awake(steps, 0);
        if (is_new && awake == steps.size()) {
            redundant_ = true;
            return 0;
        }
        if (steps.size() == 1) return 0;
        if (is_new) path_.push_back({steps, asleep_, awake});
        return std::min(go(path_[depth_]), static_cast<unsigned>(steps.size()) - 1);
    }
    // What the host does after an answer may depend on anything, so no step sleeps after it.
    bool choose_not_ready() override {
        if (redundant_) return true;
        if (depth_ == path_.size()) path_.push_back({});
        asleep_.clear();
        return path_[depth_++].chosen == 0;
    }
    void done(const Step& step) override {
        std::erase_if(asleep_, [&](const Step& each) { return depend(each, step); });
    }

private:
    struct Point {
        std::vector<Step> steps;   // empty: a query, which has two answers
        std::vector<Step> asleep;  // when the point was reached
        unsigned chosen = 0;
    };

    bool sleeps(const Step& step) const noexcept {
        return std::ranges::any_of(asleep_, [&](const Step& each) { return same(each, step); });
    }
    unsigned first_awake(const std::vector<Step>& steps, unsigned from) const noexcept {
        while (from < steps.size() && sleeps(steps[from])) ++from;
        return from;
    }
    // Steps tried before the chosen one sleep from now on.
    unsigned go(const Point& point) {
        ++depth_;
        asleep_ = point.asleep;
        for (unsigned index = 0; index < point.chosen; ++index) {
            if (!sleeps(point.steps[index])) asleep_.push_back(point.steps[index]);
        }
        return point.chosen;
    }
    bool advance(Point& point) {
        if (point.steps.empty()) return ++point.chosen < 2;
        asleep_ = point.asleep;
        point.chosen = first_awake(point.steps, point.chosen + 1);
        return point.chosen < point.steps.size();
    }

    std::vector<Point> path_;
    std::size_t depth_ = 0;
    std::vector<Step> asleep_;
    bool redundant_ = false;
};

void run(const SimulationOptions& options, const std::function<void(SimulatedBackend&)>& program,
         Explorer& explorer, Exploration& found) {
    explorer.begin();
    const auto backend = ScheduleDriver::make_backend(options, explorer);
    try {
        program(*backend);
    } catch (const std::exception& error) {
        found.failure = error.what();
        if (found.failure.empty()) found.failure = "an exception without a text";
    }
    ++found.schedules;
    if (explorer.redundant()) ++found.redundant;
    const std::vector<Hazard> hazards = backend->hazards();
    if (!hazards.empty()) found.hazard = hazards.front();
    if (found.hazard || !found.failure.empty()) found.choices = explorer.choices();
}

}  // namespace

Exploration explore(const SimulationOptions& options,
                    const std::function<void(SimulatedBackend&)>& program,
                    std::uint64_t max_schedules) {
    SimulationOptions driven = options;
    driven.schedule = Schedule::replayed;
    Explorer explorer;
    Exploration found;
    do {
        if (found.schedules == max_schedules) {
            found.bound_met = true;
            break;
        }
        run(driven, program, explorer, found);
    } while (!found.hazard && found.failure.empty() && explorer.next());
    return found;
}

}  // namespace tensorpool
