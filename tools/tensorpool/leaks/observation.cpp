#include "leaks/observation.hpp"

#include <algorithm>
#include <utility>

namespace tensorpool::command::leaks {
namespace {

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
