/// Question: how good are plans, and what does planning cost?
///
/// Inputs: a million buffers with log-uniform sizes and lifetimes, of which the largest is at most
/// a thousandth of the peak; 28,000 buffers like those of recorded training steps; and six public
/// hard instances (tests/plan/planner/minimalloc). The floor is what any planner must do: sort the
/// buffers by time and pass over them once. Everything runs on one thread. A name as first argument
/// selects one input: plan_perf million, steps or hard.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tensorpool/memory_plan.hpp>

#include "support/program.hpp"
#include "support/random.hpp"
#include "support/resident.hpp"
#include "support/turns.hpp"

namespace {

using perf::Cells;
using perf::Generator;
using perf::text;
using tensorpool::MemoryPlan;
using tensorpool::PlanOptions;
using tensorpool::TensorLifetime;
using Lifetimes = std::vector<TensorLifetime>;

/// Makes buffers of 64 B to 1 MiB that begin anywhere in `time` and live for 1 to `longest`. A
/// million of them with a `longest` of 120,000 need about 1000 times the bytes of the largest.
Lifetimes log_uniform_lifetimes(std::size_t count, std::int64_t time, std::size_t longest) {
    Generator generator(7);
    std::uniform_int_distribution<std::int64_t> begins(0, time - 1);
    Lifetimes lifetimes(count);
    for (TensorLifetime& one : lifetimes) {
        one.begin = begins(generator);
        one.end = one.begin + static_cast<std::int64_t>(perf::log_uniform(generator, 1, longest));
        one.bytes = perf::log_uniform(generator, 64, 1U << 20);
    }
    return lifetimes;
}

/// Adds one layer of a training step: buffers that live until their gradients are computed, which
/// happens in the opposite order, and buffers that only the operators of the layer use.
void add_layer(Generator& generator, std::int64_t forward, std::int64_t backward,
               Lifetimes& lifetimes) {
    for (std::int64_t i = 0; i < 6; ++i) {
        const std::size_t bytes = perf::log_uniform(generator, 4096, std::size_t{8} << 20);
        lifetimes.push_back({forward + i, backward + 20 - i, bytes, 64});
    }
    for (std::int64_t i = 0; i < 22; ++i) {
        const std::int64_t begin = (i % 2 == 0 ? forward : backward) + i / 2;
        const std::size_t bytes = perf::log_uniform(generator, 64, std::size_t{8} << 20);
        lifetimes.push_back({begin, begin + 1 + i % 5, bytes, 64});
    }
}

/// Makes training steps of 50 layers with 28 buffers each. Parameters and optimizer state live from
/// the beginning to the end.
Lifetimes training_steps(std::size_t steps) {
    constexpr std::int64_t layers = 50;
    constexpr std::int64_t ticks = 24;
    const auto end = static_cast<std::int64_t>(steps) * 2 * layers * ticks;
    Generator generator(8);
    Lifetimes lifetimes;
    for (std::int64_t layer = 0; layer < 3 * layers; ++layer) {
        const std::size_t bytes = perf::log_uniform(generator, 256, std::size_t{16} << 20);
        lifetimes.push_back({0, end, bytes, 64});
    }
    for (std::int64_t start = 0; start < end; start += 2 * layers * ticks) {
        Generator same(9);  // each step makes the same requests
        for (std::int64_t layer = 0; layer < layers; ++layer) {
            add_layer(same, start + layer * ticks, start + (2 * layers - 1 - layer) * ticks,
                      lifetimes);
        }
    }
    return lifetimes;
}

/// Reads an instance: `id,lower,upper,size` on each line after the first.
Lifetimes read_instance(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    Lifetimes lifetimes;
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        std::int64_t id = 0;
        char comma = 0;
        TensorLifetime one;
        fields >> id >> comma >> one.begin >> comma >> one.end >> comma >> one.bytes;
        lifetimes.push_back(one);
    }
    return lifetimes;
}

/// Sorts the beginnings and ends and finds the most bytes alive at once.
std::uint64_t pass_once(const Lifetimes& lifetimes) {
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;  // at one time, ends come first
    changes.reserve(2 * lifetimes.size());
    for (const TensorLifetime& one : lifetimes) {
        const auto bytes = static_cast<std::int64_t>(one.bytes);
        changes.emplace_back(one.begin, bytes);
        changes.emplace_back(one.end, -bytes);
    }
    std::sort(changes.begin(), changes.end());
    std::int64_t peak = 0;
    std::int64_t alive = 0;
    for (const auto& [time, bytes] : changes) peak = std::max(peak, alive += bytes);
    return static_cast<std::uint64_t>(peak);
}

double percent_above(std::uint64_t bytes, std::uint64_t bound) {
    return 100.0 * (static_cast<double>(bytes) / static_cast<double>(bound) - 1);
}

struct Result {
    std::vector<double> floor;    // s
    std::vector<double> seconds;  // of this thread's processor
    MemoryPlan plan;
};

Result measure(const Lifetimes& lifetimes, const PlanOptions& options, int rounds) {
    Result result;
    std::uint64_t peak = 0;
    for (int round = 0; round < rounds; ++round) {
        result.floor.push_back(perf::cpu_seconds_of([&] { peak = pass_once(lifetimes); }));
        result.seconds.push_back(perf::cpu_seconds_of(
            [&] { result.plan = tensorpool::plan_memory(lifetimes, options); }));
        tensorpool::validate(lifetimes, result.plan);
    }
    if (peak > result.plan.lower_bound_bytes) std::abort();
    return result;
}

std::string largest_of(const Lifetimes& lifetimes, std::uint64_t peak) {
    std::uint64_t largest = 0;
    for (const TensorLifetime& one : lifetimes) largest = std::max(largest, one.bytes);
    return "1/" + text(static_cast<double>(peak) / static_cast<double>(largest), 0);
}

/// The table for many buffers: distance from the lower bound, time and memory.
class Table {
public:
    explicit Table(const perf::Options& options) : options_(options), report_(options) {}

    void add(const std::string& name, const Lifetimes& lifetimes, const PlanOptions& plan,
             double aim_s) {
        const Result result = measure(lifetimes, plan, options_.rounds);
        const double seconds = perf::median(result.seconds);
        const std::uint64_t bound = result.plan.lower_bound_bytes;
        rows_.push_back({name, std::to_string(lifetimes.size()), largest_of(lifetimes, bound),
                         to_string(result.plan.method),
                         report_.judge(percent_above(result.plan.peak_bytes, bound), 1),
                         report_.judge(seconds, aim_s, 1),
                         text(seconds / perf::median(result.floor), 0),
                         text(static_cast<double>(perf::peak_resident_bytes()) / (1U << 20), 0)});
    }
    int print() const {
        report_.print("Plans of many buffers, one thread", rows_);
        return report_.status();
    }

private:
    const perf::Options& options_;
    perf::Report report_;
    std::vector<Cells> rows_ = {{"buffers", "number", "largest of the bound", "found by",
                                 "% above the bound", "CPU s", "times the floor",
                                 "peak MiB so far"}};
};

PlanOptions budget(double seconds) {
    return {.budget = std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9))};
}

int print_steps(const perf::Options& options) {
    Table table(options);
    const Lifetimes lifetimes = training_steps(options.quick ? 1 : 20);
    table.add("training steps, greedy", lifetimes, budget(0), 10);
    table.add("training steps", lifetimes, budget(options.quick ? 0.1 : 5), 10);
    return table.print();
}

int print_million(const perf::Options& options) {
    Table table(options);
    const Lifetimes lifetimes = options.quick
                                    ? log_uniform_lifetimes(5000, 5000, 600)
                                    : log_uniform_lifetimes(1'000'000, 1'000'000, 120'000);
    table.add("log-uniform, greedy", lifetimes, budget(0), 60);
    table.add("log-uniform", lifetimes, budget(options.quick ? 0.1 : 20), 60);
    return table.print();
}

/// Measures the time to reach the capacity that is known to be reachable.
int print_hard(const perf::Options& options) {
    perf::Report report(options);
    constexpr std::uint64_t reachable = 1'048'576;
    PlanOptions plan = budget(options.quick ? 0.1 : 60);
    plan.enough_bytes = reachable;
    std::vector<Cells> rows = {{"instance", "number", "found by", "% above 1,048,576", "CPU s"}};
    std::vector<double> all;
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(PERF_MINIMALLOC)) {
        if (entry.path().extension() == ".csv") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
        const Lifetimes lifetimes = read_instance(path);
        const Result result = measure(lifetimes, plan, options.rounds);
        all.push_back(perf::median(result.seconds));
        const double above = std::max(percent_above(result.plan.peak_bytes, reachable), 0.0);
        rows.push_back({path.stem().stem(), std::to_string(lifetimes.size()),
                        to_string(result.plan.method), report.judge(above, 0), text(all.back())});
    }
    rows.push_back({"median", "", "", "", report.judge(perf::median(all), 3)});
    report.print("Public hard instances, one thread, 60 s each", rows);
    return report.status();
}

}  // namespace

int main(int argc, char** argv) {
    const bool named = argc > 1 && argv[1][0] != '-';
    const std::string_view only = named ? argv[1] : "";
    const perf::Options options =
        named ? perf::read_options(argc - 1, argv + 1, 3) : perf::read_options(argc, argv, 3);
    int status = 0;
    if (only.empty() || only == "steps") status = std::max(status, print_steps(options));
    if (only.empty() || only == "million") status = std::max(status, print_million(options));
    if (only.empty() || only == "hard") status = std::max(status, print_hard(options));
    return status;
}
