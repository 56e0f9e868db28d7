#pragma once

/// @file
/// Ten minutes of samples: every sample of the last two minutes, and before that one per five
/// seconds.

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

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
    void add(const Sample<count>& sample);
    /// Returns the samples, oldest first. A thinned sample is the mean of its time step.
    std::vector<Sample<count>> samples() const;

private:
    void thin(const Sample<count>& sample);
    void merge(const Sample<count>& sample);

    std::deque<Sample<count>> full_;
    std::deque<Sample<count>> thinned_;
    unsigned merged_ = 0;  ///< samples merged into the last thinned one
};

template <std::size_t count>
void MetricHistory<count>::add(const Sample<count>& sample) {
    full_.push_back(sample);
    while (sample.time - full_.front().time > full_time) {
        thin(full_.front());
        full_.pop_front();
    }
    while (!thinned_.empty() && sample.time - thinned_.front().time > kept_time) {
        thinned_.pop_front();
    }
}

template <std::size_t count>
void MetricHistory<count>::thin(const Sample<count>& sample) {
    const auto step = [](const Sample<count>& of) { return of.time / thinned_step; };
    if (!thinned_.empty() && step(thinned_.back()) == step(sample)) return merge(sample);
    thinned_.push_back(sample);
    merged_ = 1;
}

/// Unknown values do not affect the mean.
template <std::size_t count>
void MetricHistory<count>::merge(const Sample<count>& sample) {
    ++merged_;
    for (std::size_t i = 0; i < count; ++i) {
        float& mean = thinned_.back().values[i];
        const float added = sample.values[i];
        if (std::isnan(mean)) mean = added;
        if (!std::isnan(added)) mean += (added - mean) / static_cast<float>(merged_);
    }
}

template <std::size_t count>
std::vector<Sample<count>> MetricHistory<count>::samples() const {
    std::vector<Sample<count>> all(thinned_.begin(), thinned_.end());
    all.insert(all.end(), full_.begin(), full_.end());
    return all;
}

}  // namespace tensorpool::command::serve
