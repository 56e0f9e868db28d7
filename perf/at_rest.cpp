/// Question: does a job end that needs 1.6 times the memory that its control group may have, if its
/// tensors rest in a StashedMap, and how much longer does it take than with all the memory?

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/stashed_map.hpp>

#include "at_rest_cache.hpp"
#include "at_rest_photographs.hpp"
#include "support/child.hpp"
#include "support/memory_group.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/resident.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::DataCode;
using tensorpool::DataType;
using tensorpool::PooledAllocation;
using tensorpool::StashedMapStatistics;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr double need_of_the_limit = 1.6;
/// What a process takes beside its tensors: its program, the records of its pools, 2 MiB in which
/// content is encoded, and the parts of files that are on their way to the disk.
constexpr std::size_t beside_tensors = 12 * MiB;

// Where the tensors of a job are ------------------------------------------------------------------

/// Memory of malloc.
class Malloc {
public:
    class Block {
    public:
        explicit Block(std::size_t bytes)
            : bytes_(bytes), memory_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}
        template <class T>
        std::span<T> as() const {
            return {reinterpret_cast<T*>(memory_.get()), bytes_ / sizeof(T)};
        }

    private:
        std::size_t bytes_;
        std::unique_ptr<std::byte[]> memory_;
    };

    Block make(std::size_t bytes) { return Block(bytes); }
    void put(std::size_t key, Block&& block) {
        if (tensors_.size() <= key) tensors_.resize(key + 1, nullptr);
        tensors_[key] = std::make_shared<Block>(std::move(block));
    }
    const Block& get(std::size_t key) { return *tensors_[key]; }
    StashedMapStatistics statistics() const { return {}; }

private:
    std::vector<std::shared_ptr<Block>> tensors_;
};

/// Memory of a pool.
class Pool {
public:
    PooledAllocation make(std::size_t bytes) { return PooledAllocation(pool_, bytes); }
    void put(std::size_t key, PooledAllocation&& block) {
        if (tensors_.size() <= key) tensors_.resize(key + 1);
        tensors_[key] = std::move(block);
    }
    const PooledAllocation& get(std::size_t key) { return tensors_[key]; }
    StashedMapStatistics statistics() const { return {}; }

private:
    tensorpool::MemoryPool pool_{{.name = "tensors"}};
    std::vector<PooledAllocation> tensors_;
};

/// Memory of a map within a budget, which also has the temporary tensors.
class Map {
public:
    Map(std::size_t limit, DataType type)
        : budget_("job", {.hard = limit}),
          map_({.name = "tensors", .budget = &budget_, .folder = ".", .type = type}) {}
    PooledAllocation make(std::size_t bytes) { return PooledAllocation(map_.pool(), bytes); }
    void put(std::size_t key, PooledAllocation&& block) { map_.put(key, std::move(block)); }
    tensorpool::StashedTensor get(std::size_t key) { return map_.get(key); }
    StashedMapStatistics statistics() const { return map_.statistics(); }

private:
    tensorpool::Budget budget_;
    tensorpool::StashedMap<std::size_t> map_;
};

// Jobs --------------------------------------------------------------------------------------------

/// Develops photographs as workload E does, with all pictures held: each step passes over all of
/// them, in an order of its own.
template <class Memory>
std::uint64_t develop(Memory& memory, const std::vector<perf::Photograph>& photographs) {
    perf::Generator generator(1);
    for (std::size_t i = 0; i < photographs.size(); ++i) {
        auto block = memory.make(photographs[i].bytes.size() * sizeof(float));
        perf::to_floats(photographs[i], block.template as<float>());
        memory.put(i, std::move(block));
    }
    const auto pass = [&](auto step) {
        for (const std::size_t i : perf::shuffled(generator, photographs.size())) {
            const auto& tensor = memory.get(i);
            step(perf::Image{photographs[i].height, photographs[i].width,
                             tensor.template as<float>()});
        }
    };
    const auto pass_with_blur = [&](auto step) {
        pass([&](const perf::Image& image) {
            const auto rows = memory.make(image.values.size_bytes());
            const auto blurred = memory.make(image.values.size_bytes());
            step(image, rows.template as<float>(), blurred.template as<float>());
        });
    };
    std::uint64_t hash = 0;
    pass(perf::white_balance);
    pass_with_blur(perf::denoise);
    pass_with_blur(perf::sharpen);
    pass(perf::curve_of_histogram);
    pass(perf::tone_curve);
    pass([&](const perf::Image& image) { hash = perf::hash_of_bytes(image, hash); });
    return hash;
}

/// Answers requests for sequences in random order. Each makes `tokens` tokens, which need the
/// sequence's keys and values of all layers.
template <class Memory>
std::uint64_t answer(Memory& memory, const perf::CacheShape& shape, std::size_t requests,
                     std::size_t tokens) {
    perf::Generator generator(1);
    perf::CacheModel model(shape);
    for (std::size_t key = 0; key < shape.sequences * shape.layers; ++key) {
        auto block = memory.make(shape.tensor_bytes());
        model.fill(block.template as<perf::Bf16>());
        memory.put(key, std::move(block));
    }
    std::uint64_t hash = 0;
    for (std::size_t request = 0; request < requests; ++request) {
        const std::size_t sequence = generator() % shape.sequences;
        for (std::size_t token = 0; token < tokens; ++token) {
            for (std::size_t layer = 0; layer < shape.layers; ++layer) {
                const auto& tensor = memory.get(sequence * shape.layers + layer);
                hash = model.attend(tensor.template as<perf::Bf16>(), token, hash);
            }
        }
    }
    return hash;
}

/// A job, for each kind of memory.
struct Job {
    std::string name;
    DataType type;
    std::function<std::uint64_t(Malloc&)> with_malloc;
    std::function<std::uint64_t(Pool&)> with_pool;
    std::function<std::uint64_t(Map&)> with_map;
};

template <class Work>
Job job_of(std::string name, DataType type, Work work) {
    return {std::move(name), type, work, work, work};
}

// Measuring ---------------------------------------------------------------------------------------

struct Outcome {
    std::uint64_t result;
    double seconds;
    double cpu_seconds;
    std::size_t peak_bytes;
    StashedMapStatistics at_rest;
};

/// How a process ended that did a job.
struct Run {
    std::optional<Outcome> outcome;
    int status = 0;
    std::size_t peak_bytes = 0;  // of the group; of the process if there is none
};

template <class Memory, class Work>
Outcome outcome_of(Memory& memory, const Work& work) {
    Outcome outcome = {};
    outcome.seconds = perf::seconds_of([&] { outcome.result = work(memory); });
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    outcome.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    outcome.peak_bytes = perf::peak_resident_bytes();
    outcome.at_rest = memory.statistics();
    return outcome;
}

/// Calls `work()` in a process of its own, in a new group where the system allows one. `limit` 0
/// is none.
Run run(const std::function<Outcome()>& work, std::size_t limit) {
    const perf::MemoryGroup group("tensorpool_at_rest_" + std::to_string(getpid()));
    const bool has_group = group.problem().empty();
    Run run;
    run.outcome = perf::in_a_child(
        [&] {
            if (has_group && ((limit != 0 && !group.set_limit(limit)) || !group.enter())) _exit(1);
            return work();
        },
        &run.status);
    run.peak_bytes = has_group ? group.peak_bytes() : run.outcome ? run.outcome->peak_bytes : 0;
    return run;
}

std::string mebibytes(std::size_t bytes) {
    return text(static_cast<double>(bytes) / static_cast<double>(MiB), 0);
}

std::string end_of(const Run& run, std::uint64_t expected) {
    if (run.outcome) return run.outcome->result == expected ? "equal result" : "OTHER RESULT";
    if (WIFSIGNALED(run.status)) return "killed by signal " + std::to_string(WTERMSIG(run.status));
    return "failed";
}

void measure(const perf::Options& options, perf::Report& report, const Job& job, bool has_groups) {
    const auto by_malloc = [&] {
        Malloc memory;
        return outcome_of(memory, job.with_malloc);
    };
    const Run first = run(by_malloc, 0);
    if (!first.outcome) {
        report.print_unmeasured(job.name, "it does not end even without a limit");
        return;
    }
    const auto limit =
        static_cast<std::size_t>(static_cast<double>(first.peak_bytes) / need_of_the_limit);
    const auto by_pool = [&] {
        Pool memory;
        return outcome_of(memory, job.with_pool);
    };
    const auto by_map = [&] {
        Map memory(limit - std::min(limit / 4, beside_tensors), job.type);
        return outcome_of(memory, job.with_map);
    };
    Run runs[3];
    const auto turn_of = [&](std::size_t number, const std::function<Outcome()>& work,
                             std::size_t its_limit) {
        return [&runs, number, work, its_limit] {
            runs[number] = run(work, its_limit);
            return runs[number].outcome ? runs[number].outcome->seconds : 0;
        };
    };
    const perf::Turns turns(
        options.rounds,
        {turn_of(0, by_malloc, 0), turn_of(1, by_pool, 0), turn_of(2, by_map, limit)}, false);
    std::vector<perf::Cells> rows = {{"memory from", "ended", "s", "CPU s", "of malloc's time",
                                      "of the pool's time", "peak, MiB", "put to rest, s",
                                      "restored, s", "moves to rest, to files, back",
                                      "at the end: compressed, in files, MiB"}};
    const char* const names[] = {"malloc", "a pool", "a map, limited"};
    for (std::size_t i = 0; i != 3; ++i) {
        perf::Cells row = {names[i], end_of(runs[i], first.outcome->result)};
        if (runs[i].outcome) {
            const Outcome& outcome = *runs[i].outcome;
            const StashedMapStatistics& at_rest = outcome.at_rest;
            const bool is_limited = i == 2;
            for (const std::string& cell :
                 {text(turns.median(i)), text(outcome.cpu_seconds),
                  is_limited ? report.judge(turns.ratio(i, 0), 2) : text(turns.ratio(i, 0)),
                  is_limited ? report.judge(turns.ratio(i, 1), 2) : text(turns.ratio(i, 1)),
                  mebibytes(runs[i].peak_bytes)})
                row.push_back(cell);
            if (is_limited)
                for (const std::string& cell :
                     {text(static_cast<double>(at_rest.stash_ns) * 1e-9),
                      text(static_cast<double>(at_rest.restore_ns) * 1e-9),
                      std::to_string(at_rest.stashes) + ", " + std::to_string(at_rest.spills) +
                          ", " + std::to_string(at_rest.restores),
                      mebibytes(at_rest.compressed_bytes) + ", " +
                          mebibytes(at_rest.spilled_bytes)})
                    row.push_back(cell);
        }
        row.resize(rows.front().size());
        rows.push_back(row);
    }
    if (has_groups) {
        const Run killed = run(by_malloc, limit);
        rows.push_back({"malloc, limited", end_of(killed, first.outcome->result)});
        rows.back().resize(rows.front().size());
        rows.back()[6] = mebibytes(killed.peak_bytes);
    }
    report.print(job.name + ": needs " + mebibytes(first.peak_bytes) + " MiB, may have " +
                     mebibytes(limit) + (has_groups ? "" : ", by its budget alone"),
                 rows);
    if (!runs[2].outcome || runs[2].outcome->result != first.outcome->result)
        report.print_unmeasured(job.name, "the map: " + end_of(runs[2], first.outcome->result));
}

}  // namespace

int main(int argc, char** argv) {
    setenv("TENSORPOOL_PROFILE", "off", 0);
    const perf::Options options = perf::read_options(argc, argv, 3);
    perf::Report report(options);
    const std::string problem =
        perf::MemoryGroup("tensorpool_at_rest_" + std::to_string(getpid())).problem();
    if (!problem.empty()) report.print_unmeasured("a limit that the system enforces", problem);

    const std::vector<perf::Photograph> photographs =
        options.quick ? perf::drawn_photographs(12) : perf::prepared_photographs(PERF_PHOTOGRAPHS);
    if (photographs.empty()) {
        report.print_unmeasured("photographs",
                                "found none in " PERF_PHOTOGRAPHS
                                "; perf/workloads/e_photos.py --prepare decodes them");
    } else {
        measure(options, report,
                job_of("photographs, all held", DataType::of<float>(),
                       [&](auto& memory) { return develop(memory, photographs); }),
                problem.empty());
    }
    const perf::CacheShape shape =
        options.quick ? perf::CacheShape{12, 2, 128, 512} : perf::CacheShape{40, 8, 512, 512};
    for (const std::size_t tokens : {64, 16, 1}) {
        const std::size_t requests = options.quick ? 12 : 64;
        measure(
            options, report,
            job_of("a cache of keys and values, " + std::to_string(tokens) + " tokens a request",
                   DataType{DataCode::bfloat, 0, 16, 1},
                   [&](auto& memory) { return answer(memory, shape, requests, tokens); }),
            problem.empty());
    }
    return report.status();
}
