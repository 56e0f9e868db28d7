#include "replay/rounds.hpp"

#include <algorithm>

namespace tensorpool::command::replay {
namespace {

using Figure = double (*)(const ContenderAnswer&);

double seconds(std::uint64_t nanoseconds) {
    return static_cast<double>(nanoseconds) / 1e9;
}

double peak(const ContenderAnswer& answer) {
    return static_cast<double>(std::max(answer.peak_bytes, answer.own_bytes) - answer.own_bytes);
}

/// 0 of none.
double median(std::vector<double> values) {
    if (values.empty()) return 0;
    std::ranges::sort(values);
    const std::size_t middle = values.size() / 2;
    return values.size() % 2 != 0 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Median median_of(const Result& result, const Result* pool, Figure figure) {
    std::vector<double> values;
    std::vector<double> ratios;
    for (std::size_t round = 0; round < result.rounds.size(); ++round) {
        values.push_back(figure(result.rounds[round]));
        const double base = pool != nullptr ? figure(pool->rounds[round]) : 0;
        if (base > 0) ratios.push_back(values.back() / base);
    }
    if (ratios.empty()) return {median(values), std::nullopt};
    return {median(values), median(ratios)};
}

}  // namespace

void sum_up(std::vector<Result>& results, const PlanFigures& figures) {
    const auto found = std::ranges::find_if(
        results, [](const Result& result) { return result.contender.starts_with("pool"); });
    const Result* const pool = found == results.end() ? nullptr : &*found;
    for (Result& result : results) {
        const auto of = [&](Figure figure) { return median_of(result, pool, figure); };
        result.elapsed_s = of([](const ContenderAnswer& a) { return seconds(a.elapsed_ns); });
        result.cpu_s =
            of([](const ContenderAnswer& a) { return seconds(a.user_ns + a.system_ns); });
        result.system_s = of([](const ContenderAnswer& a) { return seconds(a.system_ns); });
        result.minor_faults =
            of([](const ContenderAnswer& a) { return static_cast<double>(a.minor_faults); });
        result.peak_resident_bytes = of(peak);
        const auto alive = static_cast<double>(figures.max_alive_bytes);
        result.waste = alive > 0 ? result.peak_resident_bytes.value / alive : 0;
    }
}

std::vector<Result> play_rounds(const std::vector<Contender>& contenders, unsigned rounds,
                                Touch touch, int plan, const PlanFigures& figures) {
    std::vector<Result> results;
    for (const Contender& contender : contenders) results.emplace_back().contender = contender.name;
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t turn = 0; turn < contenders.size(); ++turn) {
            const std::size_t i = (turn + round) % contenders.size();
            results[i].rounds.push_back(run_contender(contenders[i], touch, plan));
        }
    }
    sum_up(results, figures);
    return results;
}

}  // namespace tensorpool::command::replay
