#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <benchmark/benchmark.h>
#include <sys/resource.h>

namespace perf {

/// Times slices of two kinds of work by turns, so that both run under the same conditions, and
/// reports the median of each. Counts the minor page faults of the second kind.
class Slices {
public:
    template <class Work>
    void base(Work work) {
        const double start = now();
        work();
        base_.push_back(now() - start);
    }
    template <class Work>
    void whole(Work work) {
        const long faults_before = faults();
        const double start = now();
        work();
        whole_.push_back(now() - start);
        faults_ = faults() - faults_before;
    }
    /// Reports counters for one of the `rounds` equal rounds of a slice: `seconds`, `base_seconds`,
    /// and `faults`, which are those of the last slice.
    void report(benchmark::State& state, std::size_t rounds) {
        const auto count = static_cast<double>(rounds);
        state.counters["seconds"] = median(whole_) / count;
        state.counters["base_seconds"] = median(base_) / count;
        state.counters["faults"] = static_cast<double>(faults_) / count;
    }

private:
    static double now() {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }
    static long faults() {
        rusage usage = {};
        getrusage(RUSAGE_THREAD, &usage);
        return usage.ru_minflt;
    }
    static double median(std::vector<double>& seconds) {
        const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
        std::nth_element(seconds.begin(), middle, seconds.end());
        return *middle;
    }

    std::vector<double> base_;
    std::vector<double> whole_;
    long faults_ = 0;
};

}  // namespace perf
