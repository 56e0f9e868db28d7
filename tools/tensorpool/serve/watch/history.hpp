#pragma once

/// @file
/// Ten minutes of samples of a process and of each of its present pools: every sample of the last
/// two minutes, and before that one per five seconds.

#include <cmath>
#include <deque>

#include <tensorpool/heap_profile.hpp>
#include <tensorpool/process_snapshot.hpp>

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

/// Used by one thread at a time.
class History {
public:
    /// Adds a snapshot. Snapshots must be added in the order of their times. The history of pools
    /// that a snapshot no longer includes is dropped.
    void add(const ProcessSnapshot& snapshot, const ProcessRates& rates);
    /// Returns the data of the event `history`: all samples taken before `time_ns` of the monotonic
    /// clock.
    std::string to_json(std::uint64_t process, std::uint64_t time_ns) const;

private:
    static constexpr std::size_t series_count = 16;
    struct Pool {
        std::string name;
        MetricHistory<series_count> history;
    };

    std::map<std::uint64_t, Pool> pools_;  ///< indexed by pool id
    std::uint64_t start_ns_ = 0;           ///< monotonic clock
    /// From the monotonic clock to the time of day, at the last snapshot.
    std::int64_t unix_offset_ns_ = 0;
};

/// Returns the profile without its small sites: those that hold less than `min_part` of the live
/// bytes and of the bytes at the peak. These become one site without a stack.
HeapProfile fold_small_sites(HeapProfile profile, double min_part);

/// Ten minutes of heap profiles of one process, so that the page can show which code held memory
/// before. Used by one thread at a time.
class ProfileHistory {
public:
    static constexpr std::uint64_t step_ns = 10'000'000'000;
    static constexpr std::size_t max_count = 60;
    static constexpr double min_part = 0.005;

    /// Whether a step has passed since the last profile. `steady_ns` is of a monotonic clock.
    bool is_due(std::uint64_t steady_ns) const noexcept;
    void add(HeapProfile profile, std::uint64_t steady_ns);
    /// Returns the times of the profiles in nanoseconds since 1970, oldest first.
    std::vector<std::uint64_t> times() const;
    /// Returns the newest profile that is not newer than this time; null if there is none.
    std::shared_ptr<const HeapProfile> at(std::uint64_t time_unix_ns) const;

private:
    std::deque<std::shared_ptr<const HeapProfile>> profiles_;
    std::uint64_t last_ns_ = 0;
};

}  // namespace tensorpool::command::serve
