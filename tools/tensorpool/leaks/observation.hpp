#pragma once

/// @file
/// The profiles of a process at the ends of its iterations, and the verdict from samples whether
/// the memory of a call stack grows from iteration to iteration.

#include <tensorpool/statistics_reader.hpp>

#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::leaks {

enum class Verdict : std::uint8_t {
    leak,        ///< grows in proportion to the iterations, up to the end of the window
    too_little,  ///< grows, but by too little or too irregularly to tell
    cache,       ///< grows, but less and less
    warm_up,     ///< grew at the beginning of the window only
    steady,      ///< does not grow
};

/// What one call stack held at the ends of the iterations. All values are estimates from samples.
struct History {
    std::vector<double> live;       ///< bytes in use
    std::vector<double> allocated;  ///< bytes of all allocations so far
    /// The variance of an estimate of n bytes that were allocated between the first and the last
    /// profile is n times this; see `noise_mean_of`.
    double noise_mean = 0;
};

struct Judgement {
    Verdict verdict = Verdict::steady;
    double growth = 0;       ///< bytes, from the first profile to the last
    double uncertainty = 0;  ///< the standard deviation of `growth` that sampling causes
    /// The profile from which on the growth survived to the end, and that from which on half of it
    /// did. Indices of `History::live`.
    std::size_t oldest = 0;
    std::size_t median = 0;
};

/// Repeats the last value, or zeros, so that there are `count` values.
inline void fill_up(History& history, std::size_t count) {
    history.live.resize(count, 0);
    history.allocated.resize(count, history.allocated.empty() ? 0 : history.allocated.back());
}

/// Returns the ratio of the variance of an estimate to the estimate, in bytes, for allocations of
/// so many bytes and blocks by so many samples.
///
/// A sampled block counts as 1 / p blocks, so it adds w = n / p bytes with the variance
/// w * w * (1 - p), which is w * (1 - p) per byte. This is the sampling mean for small blocks, and
/// almost 0 for blocks that are much larger than it, because all of them are sampled.
inline double noise_mean_of(double allocated_bytes, double allocated_blocks,
                            double samples) noexcept {
    if (!(samples > 0 && allocated_blocks > samples)) return 0;
    return allocated_bytes / samples * (1 - samples / allocated_blocks);
}

/// Collects profiles. Of all but the last one, only the values of each site are kept.
class Observation {
public:
    /// Adds the profile after `iteration` iterations, which grow from call to call.
    void add(HeapProfile profile, std::uint64_t iteration) {
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

    std::size_t profiles() const noexcept { return iterations_.size(); }
    /// Returns the number of iterations from the first to the last profile.
    std::uint64_t iterations() const noexcept { return iterations_since(0); }
    /// Returns the number of iterations from this profile to the last one; 0 if there is none.
    std::uint64_t iterations_since(std::size_t profile) const noexcept {
        return profile < iterations_.size() ? iterations_.back() - iterations_[profile] : 0;
    }
    double seconds() const noexcept {
        return last_.time_unix_ns < first_unix_ns_
                   ? 0
                   : static_cast<double>(last_.time_unix_ns - first_unix_ns_) / 1e9;
    }
    /// Returns the last profile; an empty one if there is none.
    const HeapProfile& last() const noexcept { return last_; }
    /// Returns the values of each site by its id. All have a value for each profile.
    const std::unordered_map<std::uint64_t, History>& sites() const noexcept { return sites_; }

private:
    /// Averages the noise of the iterations by their bytes, because a busy thread's interval may
    /// change.
    void add_noise(History& history, const ProfileSite& site) {
        const auto [at, is_new] = before_.try_emplace(site.id);
        const ProfileSite before = std::exchange(at->second, site);
        if (iterations_.empty() || site.allocated_bytes <= before.allocated_bytes) return;
        const auto bytes = static_cast<double>(site.allocated_bytes - before.allocated_bytes);
        const double noise =
            noise_mean_of(bytes, site.allocated_blocks - before.allocated_blocks,
                          static_cast<double>(site.samples) - static_cast<double>(before.samples));
        const double all = history.allocated.back() - history.allocated.front();
        if (all > 0)
            history.noise_mean += (noise - history.noise_mean) * std::min(bytes / all, 1.0);
    }

    std::vector<std::uint64_t> iterations_;
    std::uint64_t first_unix_ns_ = 0;
    HeapProfile last_;
    std::unordered_map<std::uint64_t, History> sites_;
    std::unordered_map<std::uint64_t, ProfileSite> before_;  // the sites of the profile before
};

/// The time between two calls of `Watch::look`: short, so that a profile shows the end of an
/// iteration, not the middle of the next one.
inline constexpr std::chrono::milliseconds between_looks{1};

/// When an iteration ends, and how many are observed.
struct Pace {
    double seconds = 0;  ///< after this time; 0: at each mark on the timeline
    std::string mark;    ///< only at marks with this text; "": at all marks
    std::uint64_t iterations = 20;

    bool is_by_marks() const noexcept { return seconds == 0; }
};

/// The bytes of a mark's text that the timeline keeps.
inline constexpr std::size_t mark_bytes = 23;

inline bool ends_iteration(const TimelineEntry& entry, const std::string& mark) {
    return entry.kind == EntryKind::mark &&
           (mark.empty() || entry.name == mark.substr(0, mark_bytes));
}

/// Takes a profile of one process at the end of each iteration. The first profile is taken at the
/// first mark, or at once if iterations end after a time.
///
/// A profile counts once another iteration has ended. The last one of a process that ends may have
/// been taken when the process had left its loop and freed what the loop kept.
class Watch {
public:
    explicit Watch(Pace pace) : pace_(std::move(pace)) {}

    /// Takes a profile if an iteration has ended since the last call. If several have, their
    /// profiles are left out. Throws AttachError.
    void look(StatisticsReader& process) {
        const bool has = pace_.is_by_marks() ? has_ended(process) : has_time_passed();
        if (!has || is_complete()) return;
        if (last_) observation_.add(*std::exchange(last_, std::nullopt), iterations_of_last_);
        last_ = process.heap_profile();
        iterations_of_last_ = iterations_;
    }

    /// Whether the timeline has had a mark that ends an iteration, also before the first `look`.
    bool has_marks() const noexcept { return has_marks_; }
    bool is_complete() const noexcept { return observation_.profiles() > pace_.iterations; }
    const Observation& observation() const noexcept { return observation_; }

private:
    /// Adds up the iterations whose marks are new. At the first call, there are only earlier marks.
    bool has_ended(StatisticsReader& process) {
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
    bool has_time_passed() {
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

    Pace pace_;
    Observation observation_;
    std::uint64_t iterations_ = 0;
    std::optional<HeapProfile> last_;  // does not count yet
    std::uint64_t iterations_of_last_ = 0;
    bool is_first_look_ = true;
    bool has_marks_ = false;
    std::uint64_t last_entry_ = 0;
    std::chrono::steady_clock::time_point next_;
};

struct Row {
    ProfileSite site;
    Judgement judged;
    double slope = 0;              ///< bytes per iteration
    double slope_uncertainty = 0;  ///< the standard deviation of `slope` that sampling causes
    std::uint64_t oldest = 0;      ///< iterations since the growth began
    std::uint64_t median_age = 0;  ///< iterations since half of the growth was there
    std::vector<double> live;      ///< of each profile
};

struct Report {
    Pace pace;
    std::uint64_t iterations = 0;
    std::uint64_t profiles = 0;
    double seconds = 0;
    std::uint64_t steady = 0;  ///< sites that do not grow
    std::vector<Row> rows;     ///< leaks first, then those that grow most
    /// The process, and the names of the frames. Only the sites of the rows are included.
    profile::NamedProfile named;

    std::uint64_t leaks() const noexcept;
};

Report judge(const Observation& observation, const Pace& pace);

/// Returns a headline, and a table with the stack of each leak.
std::string to_text(const Report& report, Sizes sizes);
std::string to_json(const Report& report);

/// With fewer, three thirds of the window are too short to compare.
inline constexpr std::size_t min_iterations = 10;
/// Growth below this many standard deviations of the sampling is none.
inline constexpr double min_deviations = 3;
/// Growth below this many sampling means has too few samples for a verdict on its shape. It is four
/// standard deviations for a site of small blocks.
inline constexpr double min_intervals = 16;

using Bytes = std::vector<double>;

/// Returns for each iteration the bytes that were never given back: the least that this iteration
/// and all later ones held. This never falls. Memory that comes and goes does not count.
inline Bytes survivors(const Bytes& live) {
    Bytes kept = live;
    for (std::size_t i = kept.size() - 1; i-- > 0;) kept[i] = std::min(kept[i], kept[i + 1]);
    return kept;
}

/// The standard deviation of a change of live bytes. Only blocks that were allocated or freed in
/// between can be estimated differently, and only those that are live at one of the ends count.
inline double deviation_of_change(const History& history) {
    const double growth = history.live.back() - history.live.front();
    const double allocated = history.allocated.back() - history.allocated.front();
    const double freed = allocated - growth;
    const double changed = std::min(history.live.front() + history.live.back(),
                                    std::max(allocated, 0.0) + std::max(freed, 0.0));
    return std::sqrt(history.noise_mean * changed);
}

/// The largest fall from two successive iterations to a later one. What only one profile saw may be
/// a block that was being replaced: the profile may be late, so that it shows the next iteration.
inline double largest_fall(const Bytes& live, const Bytes& kept) {
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
inline Verdict verdict_on(const Shape& shape) {
    constexpr double fair_share = 1.0 / 3;
    constexpr double slows_down = 3.0 / 8;
    constexpr double regular = 5;
    if (shape.third(1) + shape.third(2) < fair_share / 2) return Verdict::warm_up;
    if (shape.third(2) < fair_share / 4 || shape.middle() < slows_down) return Verdict::cache;
    const bool in_each_third = std::min(shape.third(0), shape.third(1)) >= fair_share / 4;
    return in_each_third && shape.regularity() >= regular ? Verdict::leak : Verdict::too_little;
}

inline std::string_view to_string(Verdict verdict) noexcept {
    constexpr std::string_view names[] = {"leak", "too little to tell", "cache that fills",
                                          "warm-up", "steady"};
    return names[static_cast<std::size_t>(verdict)];
}

/// Judges a site. `interval` is the mean distance between samples in bytes.
inline Judgement judge(const History& history, double interval) {
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

}  // namespace tensorpool::command::leaks
