#include "contest/measurement.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstddef>

namespace tensorpool::photos {
namespace {

double seconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

template <class Value>
Value median_of(const std::vector<Measurement>& runs, Value Measurement::*value) {
    std::vector<Value> values;
    for (const Measurement& run : runs) values.push_back(run.*value);
    std::ranges::sort(values);
    const std::size_t count = values.size();
    if (count == 0) return 0;
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

}  // namespace

Measurement to_measurement(const rusage& usage) {
    // Linux reports ru_maxrss in KiB: getrusage(2).
    return {.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime),
            .page_faults = static_cast<std::uint64_t>(usage.ru_minflt),
            .peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) << 10};
}

Measurement median(const std::vector<Measurement>& runs) {
    return {.cpu_seconds = median_of(runs, &Measurement::cpu_seconds),
            .page_faults = median_of(runs, &Measurement::page_faults),
            .peak_bytes = median_of(runs, &Measurement::peak_bytes)};
}

}  // namespace tensorpool::photos
