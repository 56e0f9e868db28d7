#include "replay/rounds.hpp"

#include <algorithm>

namespace tensorpool::command::replay {
namespace {

using Metric = double (*)(const ReplayAnswer&);

double seconds(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

double peak(const ReplayAnswer& answer) {
    return static_cast<double>(std::max(answer.peak_bytes, answer.own_bytes) - answer.own_bytes);
}

/// Returns the median, or 0 if there are no values.
double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Median median_of(const Result& result, const Result* pool, Metric metric) {
    std::vector<double> values;
    std::vector<double> ratios;
    for (std::size_t round = 0; round < result.rounds.size(); ++round) {
        values.push_back(metric(result.rounds[round]));
        const double base = pool != nullptr ? metric(pool->rounds[round]) : 0;
        if (base > 0) ratios.push_back(values.back() / base);
    }
    if (ratios.empty()) return {median(values), std::nullopt};
    return {median(values), median(ratios)};
}

}  // namespace

void sum_up(std::vector<Result>& results, const PlanStatistics& statistics) {
    const auto found = std::ranges::find_if(
        results, [](const Result& result) { return result.allocator.starts_with("pool"); });
    const Result* const pool = found == results.end() ? nullptr : &*found;
    for (Result& result : results) {
        const auto of = [&](Metric metric) { return median_of(result, pool, metric); };
        result.elapsed_s = of([](const ReplayAnswer& a) { return seconds(a.elapsed_ns); });
        result.cpu_s = of([](const ReplayAnswer& a) { return seconds(a.user_ns + a.system_ns); });
        result.system_s = of([](const ReplayAnswer& a) { return seconds(a.system_ns); });
        result.minor_faults =
            of([](const ReplayAnswer& a) { return static_cast<double>(a.minor_faults); });
        result.peak_resident_bytes = of(peak);
        const auto alive = static_cast<double>(statistics.max_alive_bytes);
        result.waste = alive > 0 ? result.peak_resident_bytes.value / alive : 0;
    }
}

std::vector<Result> play_rounds(const std::vector<ReplayAllocator>& allocators, unsigned rounds,
                                Touch touch, int plan, const PlanStatistics& statistics) {
    std::vector<Result> results;
    for (const ReplayAllocator& allocator : allocators)
        results.emplace_back().allocator = allocator.name;
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t turn = 0; turn < allocators.size(); ++turn) {
            const std::size_t i = (turn + round) % allocators.size();
            results[i].rounds.push_back(run_allocator(allocators[i], touch, plan));
        }
    }
    sum_up(results, statistics);
    return results;
}

}  // namespace tensorpool::command::replay
