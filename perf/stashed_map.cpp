/// Question: how much longer does a cache of keys and values take that holds 1.6 times the memory
/// of its budget, compared with one whose memory is not limited?

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/stashed_map.hpp>

#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Budget;
using tensorpool::StashedMap;
using tensorpool::StashedMapOptions;
using tensorpool::StashedMapStatistics;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t width = 512;
constexpr double part_of_the_data = 1 / 1.6;

struct Workload {
    std::size_t sequences;
    std::size_t positions;  // of each sequence
    std::size_t turns;
    std::size_t tokens;  // of each turn
    bool is_rounded;     // to BF16

    std::size_t floats() const { return positions * width * 2; }
    std::size_t bytes() const { return floats() * sizeof(float); }
};

/// Numbers as keys and values are.
class Values {
public:
    explicit Values(bool is_rounded) : is_rounded_(is_rounded) {}
    float operator()() {
        const float value = normal_(generator_);
        if (!is_rounded_) return value;
        std::uint32_t bits = 0;
        std::memcpy(&bits, &value, sizeof bits);
        bits &= 0xFFFF'0000U;
        float rounded = 0;
        std::memcpy(&rounded, &bits, sizeof rounded);
        return rounded;
    }

private:
    bool is_rounded_;
    std::mt19937 generator_{1};
    std::normal_distribution<float> normal_{0, 1};
};

/// Attention of one query to all positions of a sequence. Returns the sum of its result.
float attend(std::span<const float> keys, std::span<const float> values,
             std::span<const float> query, std::span<float> weights) {
    float sum = 0;
    for (std::size_t at = 0; at < weights.size(); ++at) {
        float parts[16] = {};
        for (std::size_t i = 0; i < width; i += 16)
            for (std::size_t k = 0; k < 16; ++k)
                parts[k] += keys[at * width + i + k] * query[i + k];
        float dot = 0;
        for (const float part : parts) dot += part;
        weights[at] = std::exp(dot / 64);
        sum += weights[at];
    }
    float result[width] = {};
    for (std::size_t at = 0; at < weights.size(); ++at)
        for (std::size_t i = 0; i < width; ++i)
            result[i] += weights[at] / sum * values[at * width + i];
    float total = 0;
    for (const float value : result) total += value;
    return total;
}

/// Turns of random sequences, each of which makes some tokens. A token attends to its sequence and
/// replaces one position of it.
class Server {
public:
    explicit Server(const Workload& workload)
        : workload_(workload), values_(workload.is_rounded), weights_(workload.positions) {}

    void fill(StashedMap<std::size_t>& map) {
        for (std::size_t sequence = 0; sequence < workload_.sequences; ++sequence) {
            tensorpool::PooledAllocation tensor(map.pool(), workload_.bytes());
            for (float& value : tensor.as<float>()) value = values_();
            map.put(sequence, std::move(tensor));
        }
    }
    void serve(StashedMap<std::size_t>& map) {
        std::mt19937 generator(7);
        for (std::size_t turn = 0; turn < workload_.turns; ++turn) {
            const std::size_t sequence = generator() % workload_.sequences;
            const tensorpool::StashedTensor tensor = map.get(sequence);
            const auto keys = tensor.as<float>().first(workload_.floats() / 2);
            const auto values = tensor.as<float>().last(workload_.floats() / 2);
            for (std::size_t token = 0; token < workload_.tokens; ++token) {
                float query[width];
                for (float& value : query) value = values_();
                results.push_back(attend(keys, values, query, weights_));
                const std::size_t at = generator() % workload_.positions * width;
                for (std::size_t i = 0; i < width; ++i) {
                    keys[at + i] = values_();
                    values[at + i] = values_();
                }
            }
        }
    }

    std::vector<float> results;

private:
    Workload workload_;
    Values values_;
    std::vector<float> weights_;
};

struct Outcome {
    double seconds = 0;
    std::vector<float> results;
    StashedMapStatistics statistics;
};

Outcome run(const Workload& workload, StashedMapOptions options) {
    options.type = tensorpool::DataType::of<float>();
    StashedMap<std::size_t> map(std::move(options));
    Server server(workload);
    server.fill(map);
    const double seconds = perf::seconds_of([&] { server.serve(map); });
    return {seconds, std::move(server.results), map.statistics()};
}

/// Prints the row of one length of turns.
perf::Cells measure(const perf::Options& options, perf::Report& report, const Workload& workload) {
    const double data = static_cast<double>(workload.sequences * workload.bytes());
    const auto limit = static_cast<std::size_t>(data * part_of_the_data);
    Outcome unlimited;
    Outcome limited;
    std::size_t peak = 0;
    const perf::Turns turns(
        options.rounds, {[&] {
                             unlimited = run(workload, {.name = "unlimited"});
                             return unlimited.seconds;
                         },
                         [&] {
                             Budget budget("kv-cache", {.hard = limit});
                             limited = run(workload, {.name = "limited",
                                                      .budget = &budget,
                                                      .folder = workload.is_rounded ? "" : "."});
                             peak = std::max<std::size_t>(peak, budget.statistics().peak_bytes);
                             return limited.seconds;
                         }});
    if (unlimited.results != limited.results || peak > limit || limited.statistics.failures != 0) {
        std::fprintf(stderr, "stashed_map_perf: the results differ, or the limit was passed\n");
        std::exit(1);
    }
    const StashedMapStatistics& now = limited.statistics;
    const auto turn_count = static_cast<double>(workload.turns);
    return {std::to_string(workload.tokens),
            text(turns.median(0) / turn_count * 1e3),
            text(turns.median(1) / turn_count * 1e3),
            report.judge(turns.ratio(1, 0), 2),
            text(static_cast<double>(now.misses) / turn_count),
            text(static_cast<double>(now.compressed_bytes + now.spilled_bytes) /
                 static_cast<double>(now.stashed_bytes)),
            text(static_cast<double>(peak) / data)};
}

void measure(const perf::Options& options, perf::Report& report, bool is_rounded) {
    std::vector<perf::Cells> rows = {{"tokens a turn", "unlimited, ms a turn", "limited", "ratio",
                                      "misses", "at rest", "peak / data"}};
    for (const std::size_t tokens : {1, 16, 64, 256}) {
        Workload workload{.sequences = 40,
                          .positions = 1024,
                          .turns = 60,
                          .tokens = tokens,
                          .is_rounded = is_rounded};
        if (options.quick) workload = {12, 256, 12, 1, is_rounded};
        rows.push_back(measure(options, report, workload));
    }
    report.print(is_rounded ? "values of BF16 in FP32, compressed in memory" : "FP32, spilled",
                 rows);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 3);
    perf::Report report(options);
    measure(options, report, true);
    measure(options, report, false);
    return report.status();
}
