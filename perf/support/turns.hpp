#pragma once

/// Subjects that take turns within one run, so that all see the same machine.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace perf {

inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Seconds that `work()` takes.
template <class Work>
double seconds_of(Work work) {
    const double start = now_s();
    work();
    return now_s() - start;
}

/// Seconds that `work()` takes of this thread's processor: the same on a quiet machine for work
/// that never waits, and still good on a busy one. Reading that clock takes a call to the system,
/// so it is for work of 100 us and more.
template <class Work>
double cpu_seconds_of(Work work) {
    const auto now = [] {
        timespec time = {};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
    };
    const double start = now();
    work();
    return now() - start;
}

/// The figure below which `part` of them lie.
inline double quantile(std::vector<double> figures, double part) {
    const auto last = static_cast<double>(figures.size() - 1);
    const auto at = figures.begin() + static_cast<std::ptrdiff_t>(last * part + 0.5);
    std::nth_element(figures.begin(), at, figures.end());
    return *at;
}
inline double median(std::vector<double> figures) {
    return quantile(std::move(figures), 0.5);
}

/// Makes a slice of its subject's work and returns a figure, such as ns a step.
using Subject = std::function<double()>;

/// The figures of all rounds. Each round begins with another subject; a round before the first
/// warms up where `warm` is set.
class Turns {
public:
    Turns(int rounds, const std::vector<Subject>& subjects, bool warm = true)
        : figures_(subjects.size()) {
        if (warm) {
            for (const Subject& subject : subjects) subject();
        }
        for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
            std::vector<double> figures(subjects.size());
            for (std::size_t i = 0; i < subjects.size(); ++i) {
                const std::size_t turn = (round + i) % subjects.size();
                figures[turn] = subjects[turn]();
            }
            for (std::size_t i = 0; i < figures.size(); ++i) figures_[i].push_back(figures[i]);
        }
    }

    const std::vector<double>& of(std::size_t subject) const { return figures_[subject]; }
    double median(std::size_t subject) const { return perf::median(of(subject)); }
    /// One subject's figure by another's, round by round.
    std::vector<double> ratios(std::size_t subject, std::size_t to) const {
        std::vector<double> ratios;
        for (std::size_t round = 0; round < of(subject).size(); ++round) {
            ratios.push_back(of(subject)[round] / of(to)[round]);
        }
        return ratios;
    }
    /// The median of that: what makes a whole round slow drops out.
    double ratio(std::size_t subject, std::size_t to) const {
        return perf::median(ratios(subject, to));
    }

private:
    std::vector<std::vector<double>> figures_;
};

}  // namespace perf
