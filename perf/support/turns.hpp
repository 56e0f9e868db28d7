#pragma once

/// Subjects that alternate within one run, so that all run under the same conditions.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

namespace perf {

/// Returns the time of a steady clock in seconds.
inline double now_s() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

/// Returns the seconds that `work()` takes.
template <class Work>
double seconds_of(Work work) {
    const double start = now_s();
    work();
    return now_s() - start;
}

/// Returns the processor seconds of this thread that `work()` takes. On a quiet machine this equals
/// elapsed time for work that never waits, and it stays usable on a busy machine. Reading this
/// clock is a system call, so `work()` should take 100 us or more.
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

/// Returns the value below which the fraction `part` of all values lies. `values` is not empty.
inline double quantile(std::vector<double> values, double part) {
    const auto last = static_cast<double>(values.size() - 1);
    const auto at = values.begin() + std::lround(last * part);
    std::nth_element(values.begin(), at, values.end());
    return *at;
}
inline double median(std::vector<double> values) {
    return quantile(std::move(values), 0.5);
}

/// Runs a slice of one subject's work and returns a value, such as nanoseconds per step.
using Subject = std::function<double()>;

/// Runs all subjects in each round and keeps their values. Each round begins with another subject.
/// If `warm` is set, one more round runs first, as a warm-up.
class Turns {
public:
    Turns(int rounds, const std::vector<Subject>& subjects, bool warm = true)
        : values_(subjects.size()) {
        if (warm) {
            for (const Subject& subject : subjects) subject();
        }
        for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
            std::vector<double> values(subjects.size());
            for (std::size_t i = 0; i < subjects.size(); ++i) {
                const std::size_t turn = (round + i) % subjects.size();
                values[turn] = subjects[turn]();
            }
            for (std::size_t i = 0; i < values.size(); ++i) values_[i].push_back(values[i]);
        }
    }

    /// Returns the subject's values, one for each round.
    const std::vector<double>& of(std::size_t subject) const { return values_[subject]; }
    double median(std::size_t subject) const { return perf::median(of(subject)); }
    /// Returns, for each round, the value of `subject` divided by the value of `to`.
    std::vector<double> ratios(std::size_t subject, std::size_t to) const {
        std::vector<double> ratios;
        for (std::size_t round = 0; round < of(subject).size(); ++round) {
            ratios.push_back(of(subject)[round] / of(to)[round]);
        }
        return ratios;
    }
    /// Returns the median of `ratios(subject, to)`. It does not depend on what makes a whole round
    /// slow.
    double ratio(std::size_t subject, std::size_t to) const {
        return perf::median(ratios(subject, to));
    }

private:
    std::vector<std::vector<double>> values_;
};

}  // namespace perf
