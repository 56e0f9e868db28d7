#pragma once

/// @file
/// Ten minutes of figures: every sample of the last two, before that one in five seconds.

#include <array>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

namespace tensorpool::command::serve {

template <std::size_t count>
struct Sample {
    std::uint32_t time = 0;  ///< hundredths of a second since the process was first seen
    std::array<float, count> figures = {};  ///< NaN where one is not known
};

/// One thread's at a time.
template <std::size_t count>
class FigureHistory {
public:
    static constexpr std::uint32_t full_time = 120'00;
    static constexpr std::uint32_t kept_time = 600'00;
    static constexpr std::uint32_t thinned_step = 5'00;

    /// `sample` is not older than those before it.
    void add(const Sample<count>& sample);
    /// Oldest first; of those that were thinned each is the mean of its step.
    std::vector<Sample<count>> samples() const;

private:
    void thin(const Sample<count>& sample);
    void merge(const Sample<count>& sample);

    std::deque<Sample<count>> full_;
    std::deque<Sample<count>> thinned_;
    unsigned merged_ = 0;  ///< samples in the last of those
};

template <std::size_t count>
void FigureHistory<count>::add(const Sample<count>& sample) {
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
void FigureHistory<count>::thin(const Sample<count>& sample) {
    const auto step = [](const Sample<count>& of) { return of.time / thinned_step; };
    if (!thinned_.empty() && step(thinned_.back()) == step(sample)) return merge(sample);
    thinned_.push_back(sample);
    merged_ = 1;
}

/// What only some of them know is taken from those.
template <std::size_t count>
void FigureHistory<count>::merge(const Sample<count>& sample) {
    ++merged_;
    for (std::size_t i = 0; i < count; ++i) {
        float& mean = thinned_.back().figures[i];
        const float added = sample.figures[i];
        if (std::isnan(mean)) mean = added;
        if (!std::isnan(added)) mean += (added - mean) / static_cast<float>(merged_);
    }
}

template <std::size_t count>
std::vector<Sample<count>> FigureHistory<count>::samples() const {
    std::vector<Sample<count>> all(thinned_.begin(), thinned_.end());
    all.insert(all.end(), full_.begin(), full_.end());
    return all;
}

}  // namespace tensorpool::command::serve
