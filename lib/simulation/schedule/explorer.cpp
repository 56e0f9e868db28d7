#include "simulation/schedule/explorer.hpp"

#include <algorithm>

namespace tensorpool::device {
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
    return std::any_of(some.begin(), some.end(), [&](const MemoryRange& range) {
        return std::any_of(others.begin(), others.end(),
                           [&](const MemoryRange& other) { return overlap(range, other); });
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

}  // namespace

void Explorer::begin() {
    depth_ = 0;
    asleep_.clear();
    redundant_ = false;
}

bool Explorer::next() {
    while (!path_.empty()) {
        if (advance(path_.back())) return true;
        path_.pop_back();
    }
    return false;
}

std::vector<unsigned> Explorer::choices() const {
    std::vector<unsigned> made;
    for (std::size_t depth = 0; depth < std::min(depth_, path_.size()); ++depth) {
        made.push_back(path_[depth].chosen);
    }
    return made;
}

bool Explorer::advance(Point& point) {
    if (point.steps.empty()) return ++point.chosen < 2;
    asleep_ = point.asleep;
    point.chosen = first_awake(point.steps, point.chosen + 1);
    return point.chosen < point.steps.size();
}

bool Explorer::sleeps(const Step& step) const noexcept {
    return std::any_of(asleep_.begin(), asleep_.end(),
                       [&](const Step& each) { return same(each, step); });
}

unsigned Explorer::first_awake(const std::vector<Step>& steps, unsigned from) const noexcept {
    while (from < steps.size() && sleeps(steps[from])) ++from;
    return from;
}

unsigned Explorer::choose_step(const std::vector<Step>& steps) {
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

// Steps tried before the chosen one sleep from now on.
unsigned Explorer::go(const Point& point) {
    ++depth_;
    asleep_ = point.asleep;
    for (unsigned index = 0; index < point.chosen; ++index) {
        if (!sleeps(point.steps[index])) asleep_.push_back(point.steps[index]);
    }
    return point.chosen;
}

// What the host does after an answer may depend on anything, so no step sleeps after it.
bool Explorer::choose_not_ready() {
    if (redundant_) return true;
    if (depth_ == path_.size()) path_.push_back({});
    asleep_.clear();
    return path_[depth_++].chosen == 0;
}

void Explorer::done(const Step& step) {
    std::erase_if(asleep_, [&](const Step& each) { return depend(each, step); });
}

}  // namespace tensorpool::device
