#include "leaks/observation.hpp"

#include <cmath>
#include <numeric>

namespace tensorpool::command::leaks {
namespace {

/// With fewer, three thirds of the window are too short to compare.
constexpr std::size_t min_iterations = 10;
/// Growth below this many standard deviations of the sampling is none.
constexpr double min_deviations = 3;
/// Growth below this many sampling means has too few samples for a verdict on its shape. It is four
/// standard deviations for a site of small blocks.
constexpr double min_intervals = 16;

using Bytes = std::vector<double>;

/// Returns for each iteration the bytes that were never given back: the least that this iteration
/// and all later ones held. This never falls. Memory that comes and goes does not count.
Bytes survivors(const Bytes& live) {
    Bytes kept = live;
    for (std::size_t i = kept.size() - 1; i-- > 0;) kept[i] = std::min(kept[i], kept[i + 1]);
    return kept;
}

/// The standard deviation of a change of live bytes. Only blocks that were allocated or freed in
/// between can be estimated differently, and only those that are live at one of the ends count.
double deviation_of_change(const History& history) {
    const double growth = history.live.back() - history.live.front();
    const double allocated = history.allocated.back() - history.allocated.front();
    const double freed = allocated - growth;
    const double changed = std::min(history.live.front() + history.live.back(),
                                    std::max(allocated, 0.0) + std::max(freed, 0.0));
    return std::sqrt(history.noise_mean * changed);
}

/// The largest fall from two successive iterations to a later one. What only one profile saw may be
/// a block that was being replaced: the profile may be late, so that it shows the next iteration.
double largest_fall(const Bytes& live, const Bytes& kept) {
    double fall = 0;
    for (std::size_t i = 1; i < live.size(); ++i) {
        fall = std::max(fall, std::min(live[i - 1], live[i]) - kept[i]);
    }
    return fall;
}

/// How the survivors grew: the shape of a curve that never falls.
class Shape {
public:
    Shape(const Bytes& kept, double noise_mean) : kept_(kept) {
        const double steps = static_cast<double>(kept.size() - 1);
        const double mean = growth() / steps;
        double squares = 0;
        for (std::size_t i = 1; i < kept.size(); ++i) {
            const double step = kept[i] - kept[i - 1];
            squares += (step - mean) * (step - mean);
            middle_ += step * (static_cast<double>(i) - 0.5) / steps / growth();
        }
        const double variance = std::max(squares / (steps - 1) - noise_mean * mean, 0.0);
        regularity_ = variance == 0 ? HUGE_VAL : mean / std::sqrt(variance / steps);
    }

    double growth() const { return kept_.back() - kept_.front(); }
    /// The part of the growth in the third 0, 1 or 2 of the window.
    double third(std::size_t number) const {
        const std::size_t steps = kept_.size() - 1;
        return (kept_[(number + 1) * steps / 3] - kept_[number * steps / 3]) / growth();
    }
    /// The mean time of the growth, as a part of the window (Laplace's test for a trend): 1/2 for
    /// growth in proportion to the iterations, less if it slows down.
    double middle() const { return middle_; }
    /// The mean step in standard errors (Student's t), without the variance due to sampling. If k
    /// of n iterations add the same and the others nothing, it is about sqrt(k * n / (n - k)).
    double regularity() const { return regularity_; }
    /// The first iteration by which this part of the growth is there.
    std::size_t reaches(double part) const {
        const double bytes = kept_.front() + part * growth();
        return static_cast<std::size_t>(std::ranges::lower_bound(kept_, bytes) - kept_.begin());
    }

private:
    const Bytes& kept_;
    double middle_ = 0;
    double regularity_ = 0;
};

/// A site that leaks grows in each third of the window by at least a quarter of that third's share,
/// by regular steps, and does not slow down.
Verdict verdict_on(const Shape& shape) {
    constexpr double fair_share = 1.0 / 3;
    constexpr double slows_down = 3.0 / 8;
    constexpr double regular = 5;
    if (shape.third(1) + shape.third(2) < fair_share / 2) return Verdict::warm_up;
    if (shape.third(2) < fair_share / 4 || shape.middle() < slows_down) return Verdict::cache;
    const bool in_each_third = std::min(shape.third(0), shape.third(1)) >= fair_share / 4;
    return in_each_third && shape.regularity() >= regular ? Verdict::leak : Verdict::too_little;
}

/// Repeats the last value, or zeros, so that there are `count` values.
void fill_up(History& history, std::size_t count) {
    history.live.resize(count, 0);
    history.allocated.resize(count, history.allocated.empty() ? 0 : history.allocated.back());
}

/// The bytes of a mark's text that the timeline keeps.
constexpr std::size_t mark_bytes = 23;

bool ends_iteration(const TimelineEntry& entry, const std::string& mark) {
    return entry.kind == EntryKind::mark &&
           (mark.empty() || entry.name == mark.substr(0, mark_bytes));
}

}  // namespace

std::string_view to_string(Verdict verdict) noexcept {
    constexpr std::string_view names[] = {"leak", "too little to tell", "cache that fills",
                                          "warm-up", "steady"};
    return names[static_cast<std::size_t>(verdict)];
}

double noise_mean_of(double allocated_bytes, double allocated_blocks, double samples) noexcept {
    if (!(samples > 0 && allocated_blocks > samples)) return 0;
    return allocated_bytes / samples * (1 - samples / allocated_blocks);
}

Judgement judge(const History& history, double interval) {
    Judgement judged;
    if (history.live.size() < 2) return judged;
    const Bytes& live = history.live;
    judged.growth = live.back() - live.front();
    judged.uncertainty = deviation_of_change(history);
    const Bytes kept = survivors(live);
    const std::size_t iterations = live.size() - 1;
    const bool lasts = kept[iterations * 2 / 3] - live.front() >= judged.growth / 4;
    if (judged.growth <= 0 || judged.growth < min_deviations * judged.uncertainty || !lasts) {
        return judged;
    }
    const Shape shape(kept, history.noise_mean);
    judged.oldest = shape.reaches(0.05);
    judged.median = shape.reaches(0.5);
    const bool is_enough =
        iterations >= min_iterations &&
        judged.growth >= min_intervals * std::max(interval, history.noise_mean) &&
        largest_fall(live, kept) <= judged.growth / 2;
    judged.verdict = is_enough ? verdict_on(shape) : Verdict::too_little;
    return judged;
}

void Observation::add(HeapProfile profile, std::uint64_t iteration) {
    if (iterations_.empty()) first_unix_ns_ = profile.time_unix_ns;
    for (const ProfileSite& site : profile.sites) {
        History& history = sites_[site.id];
        fill_up(history, iterations_.size());
        history.live.push_back(static_cast<double>(site.live_bytes));
        history.allocated.push_back(static_cast<double>(site.allocated_bytes));
        add_noise(history, site);
    }
    iterations_.push_back(iteration);
    for (auto& [id, history] : sites_) fill_up(history, iterations_.size());
    last_ = std::move(profile);
}

/// Averages the noise of the iterations by their bytes, because a busy thread's interval may
/// change.
void Observation::add_noise(History& history, const ProfileSite& site) {
    const auto [at, is_new] = before_.try_emplace(site.id);
    const ProfileSite before = std::exchange(at->second, site);
    if (iterations_.empty() || site.allocated_bytes <= before.allocated_bytes) return;
    const auto bytes = static_cast<double>(site.allocated_bytes - before.allocated_bytes);
    const double noise =
        noise_mean_of(bytes, site.allocated_blocks - before.allocated_blocks,
                      static_cast<double>(site.samples) - static_cast<double>(before.samples));
    const double all = history.allocated.back() - history.allocated.front();
    if (all > 0) history.noise_mean += (noise - history.noise_mean) * std::min(bytes / all, 1.0);
}

std::uint64_t Observation::iterations_since(std::size_t profile) const noexcept {
    return profile < iterations_.size() ? iterations_.back() - iterations_[profile] : 0;
}

double Observation::seconds() const noexcept {
    return last_.time_unix_ns < first_unix_ns_
               ? 0
               : static_cast<double>(last_.time_unix_ns - first_unix_ns_) / 1e9;
}

void Watch::look(StatisticsReader& process) {
    const bool has = pace_.is_by_marks() ? has_ended(process) : has_time_passed();
    if (!has || is_complete()) return;
    if (last_) observation_.add(*std::exchange(last_, std::nullopt), iterations_of_last_);
    last_ = process.heap_profile();
    iterations_of_last_ = iterations_;
}

/// Adds up the iterations whose marks are new. At the first call, there are only earlier marks.
bool Watch::has_ended(StatisticsReader& process) {
    const TimelinePart part = process.entries_since(last_entry_);
    last_entry_ = part.last;
    const auto marks = std::ranges::count_if(part.entries, [&](const TimelineEntry& entry) {
        return ends_iteration(entry, pace_.mark);
    });
    has_marks_ = has_marks_ || marks != 0;
    if (std::exchange(is_first_look_, false)) return false;
    iterations_ += static_cast<std::uint64_t>(marks);
    return marks != 0;
}

bool Watch::has_time_passed() {
    const auto now = std::chrono::steady_clock::now();
    if (std::exchange(is_first_look_, false)) {
        next_ = now;
    } else if (now < next_) {
        return false;
    } else {
        ++iterations_;
    }
    next_ += std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(pace_.seconds));
    next_ = std::max(next_, now);
    return true;
}

}  // namespace tensorpool::command::leaks
