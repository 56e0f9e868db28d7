#pragma once

/// @file
/// Ten minutes of samples of a process and of each of its present pools: every sample of the last
/// two minutes, and before that one per five seconds.

#include <deque>

#include <nlohmann/json.hpp>

#include <tensorpool/process_snapshot.hpp>

#include "common/html.hpp"
#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::serve {

template <std::size_t count>
struct Sample {
    std::uint32_t time = 0;  ///< hundredths of a second since the process was first seen
    std::array<float, count> values = {};  ///< NaN if unknown
};

/// Used by one thread at a time.
template <std::size_t count>
class MetricHistory {
public:
    static constexpr std::uint32_t full_time = 120'00;
    static constexpr std::uint32_t kept_time = 600'00;
    static constexpr std::uint32_t thinned_step = 5'00;

    /// `sample` must not be older than the previous one.
    void add(const Sample<count>& sample) {
        full_.push_back(sample);
        while (sample.time - full_.front().time > full_time) {
            thin(full_.front());
            full_.pop_front();
        }
        while (!thinned_.empty() && sample.time - thinned_.front().time > kept_time) {
            thinned_.pop_front();
        }
    }

    /// Returns the samples, oldest first. A thinned sample is the mean of its time step.
    std::vector<Sample<count>> samples() const {
        std::vector<Sample<count>> all(thinned_.begin(), thinned_.end());
        all.insert(all.end(), full_.begin(), full_.end());
        return all;
    }

private:
    void thin(const Sample<count>& sample) {
        const auto step = [](const Sample<count>& of) { return of.time / thinned_step; };
        if (!thinned_.empty() && step(thinned_.back()) == step(sample)) return merge(sample);
        thinned_.push_back(sample);
        merged_ = 1;
    }

    /// Unknown values do not affect the mean.
    void merge(const Sample<count>& sample) {
        ++merged_;
        for (std::size_t i = 0; i < count; ++i) {
            float& mean = thinned_.back().values[i];
            const float added = sample.values[i];
            if (std::isnan(mean)) mean = added;
            if (!std::isnan(added)) mean += (added - mean) / static_cast<float>(merged_);
        }
    }

    std::deque<Sample<count>> full_;
    std::deque<Sample<count>> thinned_;
    unsigned merged_ = 0;  ///< samples merged into the last thinned one
};

using Json = nlohmann::ordered_json;

inline constexpr std::uint64_t unit_ns = 10'000'000;  // of Sample::time

inline constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

/// What a sample is taken from. `rates` is null for the first snapshot that includes the pool.
struct Source {
    const PoolStatistics& pool;
    const PoolRates* rates;
    float faults;  ///< page faults of the process per second
};

/// A series with the name that the page uses.
struct Series {
    const char* name;
    float (*value)(const Source& of);
};

template <std::uint64_t PoolStatistics::*... bytes>
float sum_of(const Source& of) {
    return static_cast<float>(((of.pool.*bytes) + ...));
}

template <double PoolRates::*rate>
float rate_of(const Source& of) {
    return of.rates != nullptr ? static_cast<float>(of.rates->*rate) : unknown;
}

inline constexpr Series all_series[] = {
    {"in_use", sum_of<&PoolStatistics::in_use_bytes>},
    {"magazine", sum_of<&PoolStatistics::parked_bytes>},
    {"depot", sum_of<&PoolStatistics::depot_bytes>},
    {"span", sum_of<&PoolStatistics::span_bytes>},
    {"extent", sum_of<&PoolStatistics::cached_bytes, &PoolStatistics::free_bytes>},
    {"capacity", sum_of<&PoolStatistics::capacity_bytes>},
    {"limit",
     [](const Source& of) {
         return of.pool.limit_bytes == 0 ? unknown : sum_of<&PoolStatistics::limit_bytes>(of);
     }},
    {"from_magazines", rate_of<&PoolRates::from_magazines>},
    {"from_depots", rate_of<&PoolRates::from_depots>},
    {"from_spans", rate_of<&PoolRates::from_spans>},
    {"from_extents", rate_of<&PoolRates::from_extents>},
    {"from_system", rate_of<&PoolRates::from_system>},
    {"allocated", rate_of<&PoolRates::allocated_bytes>},
    {"rounding", rate_of<&PoolRates::rounding_ratio>},
    {"hit_ratio", rate_of<&PoolRates::hit_ratio>},
    {"faults", [](const Source& of) { return of.faults; }},
};
using PoolSample = Sample<std::size(all_series)>;

inline const PoolRates* rates_of(const ProcessRates& rates, std::uint64_t pool) {
    const auto found = std::ranges::find(rates.pools, pool, &PoolRates::pool);
    return found == rates.pools.end() ? nullptr : &*found;
}

/// Unknown values become null.
inline Json series_of(std::span<const PoolSample> samples) {
    Json all;
    for (std::size_t i = 0; i < std::size(all_series); ++i) {
        Json& values = all[all_series[i].name] = Json::array();
        for (const PoolSample& sample : samples) values.push_back(sample.values[i]);
    }
    return all;
}

/// Returns the times in seconds since 1970, with the precision of `Sample::time`.
inline Json times_of(std::span<const PoolSample> samples, double start) {
    Json times = Json::array();
    for (const PoolSample& sample : samples) {
        times.push_back(std::round(start * 100 + sample.time) / 100);
    }
    return times;
}

/// Used by one thread at a time.
class History {
public:
    /// Adds a snapshot. Snapshots must be added in the order of their times. The history of pools
    /// that a snapshot no longer includes is dropped.
    void add(const ProcessSnapshot& snapshot, const ProcessRates& rates) {
        if (start_ns_ == 0) start_ns_ = snapshot.time_ns;
        if (snapshot.time_ns < start_ns_) return;
        unix_offset_ns_ = static_cast<std::int64_t>(snapshot.time_unix_ns - snapshot.time_ns);
        const float faults = rates.seconds > 0 ? static_cast<float>(rates.minor_faults) : unknown;
        std::erase_if(pools_, [&](const auto& kept) {
            return std::ranges::find(snapshot.pools, kept.first, &PoolStatistics::id) ==
                   snapshot.pools.end();
        });
        for (const PoolStatistics& pool : snapshot.pools) {
            PoolSample sample = {
                .time = static_cast<std::uint32_t>((snapshot.time_ns - start_ns_) / unit_ns)};
            const Source source{pool, rates_of(rates, pool.id), faults};
            std::ranges::transform(all_series, sample.values.begin(),
                                   [&](const Series& series) { return series.value(source); });
            Pool& kept = pools_[pool.id];
            kept.name = pool.name;
            kept.history.add(sample);
        }
    }
    /// Returns the data of the event `history`: all samples taken before `time_ns` of the monotonic
    /// clock.
    std::string to_json(std::uint64_t process, std::uint64_t time_ns) const {
        const std::uint64_t until = time_ns < start_ns_ ? 0 : (time_ns - start_ns_) / unit_ns;
        const double start =
            static_cast<double>(start_ns_ + static_cast<std::uint64_t>(unix_offset_ns_)) / 1e9;
        Json json = {{"process", process}, {"pools", Json::array()}};
        for (const auto& [id, pool] : pools_) {
            std::vector<PoolSample> samples = pool.history.samples();
            std::erase_if(samples,
                          [until](const PoolSample& sample) { return sample.time >= until; });
            json["pools"].push_back({{"id", id},
                                     {"name", pool.name},
                                     {"t", times_of(samples, start)},
                                     {"series", series_of(samples)}});
        }
        return json_line(json);
    }

private:
    struct Pool {
        std::string name;
        MetricHistory<std::size(all_series)> history;
    };

    std::map<std::uint64_t, Pool> pools_;  ///< indexed by pool id
    std::uint64_t start_ns_ = 0;           ///< monotonic clock
    /// From the monotonic clock to the time of day, at the last snapshot.
    std::int64_t unix_offset_ns_ = 0;
};

/// Returns the profile without its small sites: those that hold less than `min_part` of the live
/// bytes and of the bytes at the peak. These become one site without a stack.
inline HeapProfile fold_small_sites(HeapProfile profile, double min_part) {
    ProfileSite all;
    for (const ProfileSite& site : profile.sites) profile::add(all, site);
    const auto is_small = [&](const ProfileSite& site) {
        const auto below = [&](std::uint64_t part, std::uint64_t whole) {
            return part == 0 || static_cast<double>(part) < min_part * static_cast<double>(whole);
        };
        return below(site.live_bytes, all.live_bytes) && below(site.peak_bytes, all.peak_bytes);
    };
    const auto small =
        std::stable_partition(profile.sites.begin(), profile.sites.end(), std::not_fn(is_small));
    if (small != profile.sites.end()) {
        ProfileSite folded;
        std::for_each(small, profile.sites.end(),
                      [&](const auto& site) { profile::add(folded, site); });
        profile.sites.erase(small, profile.sites.end());
        profile.sites.push_back(std::move(folded));
    }
    profile::drop_unused_frames(profile);
    return profile;
}

/// Ten minutes of heap profiles of one process, so that the page can show which code held memory
/// before. Used by one thread at a time.
class ProfileHistory {
public:
    static constexpr std::uint64_t step_ns = 10'000'000'000;
    static constexpr std::size_t max_count = 60;
    static constexpr double min_part = 0.005;

    /// Whether a step has passed since the last profile. `steady_ns` is of a monotonic clock.
    bool is_due(std::uint64_t steady_ns) const noexcept {
        return profiles_.empty() || steady_ns >= last_ns_ + step_ns;
    }
    void add(HeapProfile profile, std::uint64_t steady_ns) {
        last_ns_ = steady_ns;
        profiles_.push_back(
            std::make_shared<const HeapProfile>(fold_small_sites(std::move(profile), min_part)));
        if (profiles_.size() > max_count) profiles_.pop_front();
    }
    /// Returns the times of the profiles in nanoseconds since 1970, oldest first.
    std::vector<std::uint64_t> times() const {
        std::vector<std::uint64_t> times;
        for (const auto& profile : profiles_) times.push_back(profile->time_unix_ns);
        return times;
    }
    /// Returns the newest profile that is not newer than this time; null if there is none.
    std::shared_ptr<const HeapProfile> at(std::uint64_t time_unix_ns) const {
        const auto found = std::ranges::find_if(
            profiles_.rbegin(), profiles_.rend(),
            [&](const auto& profile) { return profile->time_unix_ns <= time_unix_ns; });
        return found == profiles_.rend() ? nullptr : *found;
    }

private:
    std::deque<std::shared_ptr<const HeapProfile>> profiles_;
    std::uint64_t last_ns_ = 0;
};

}  // namespace tensorpool::command::serve
