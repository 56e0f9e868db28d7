/// Question: does a job end that needs 1.6 times the memory that its control group may have, if its
/// tensors rest in a StashedMap, and how much longer does it take than with all the memory?

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/freeze.hpp>
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
    const Block& read(std::size_t key) { return get(key); }
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
    const PooledAllocation& read(std::size_t key) { return get(key); }
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
    tensorpool::StashedTensorView read(std::size_t key) { return map_.read(key); }
    StashedMapStatistics statistics() const { return map_.statistics(); }

private:
    tensorpool::Budget budget_;
    tensorpool::StashedMap<std::size_t> map_;
};

/// Memory of a pool whose tensors are frozen in place, without a budget.
class Frozen {
public:
    explicit Frozen(DataType type) : type_(type) {}
    PooledAllocation make(std::size_t bytes) { return pool_.make(bytes); }
    void put(std::size_t key, PooledAllocation&& block) {
        tensorpool::freeze(block,
                           {.type = type_, .window_bytes = MiB, .system_calls_may_fail = true});
        pool_.put(key, std::move(block));
    }
    const PooledAllocation& get(std::size_t key) { return pool_.get(key); }
    const PooledAllocation& read(std::size_t key) { return pool_.get(key); }
    StashedMapStatistics statistics() const {
        const tensorpool::FreezeStatistics frozen = tensorpool::freeze_statistics();
        return {.compressed_bytes = frozen.bytes_at_rest, .restores = frozen.faults};
    }

private:
    DataType type_;
    Pool pool_;
};

// Jobs --------------------------------------------------------------------------------------------

template <class Memory>
void hold(Memory& memory, const std::vector<perf::Photograph>& photographs) {
    for (std::size_t i = 0; i < photographs.size(); ++i) {
        auto block = memory.make(photographs[i].bytes.size() * sizeof(float));
        perf::to_floats(photographs[i], block.template as<float>());
        memory.put(i, std::move(block));
    }
}

/// Calls `step(image)` for each of the photographs that are held, in random order.
template <class Memory, class Step>
void pass_over(Memory& memory, const std::vector<perf::Photograph>& photographs,
               perf::Generator& generator, Step step) {
    for (const std::size_t i : perf::shuffled(generator, photographs.size())) {
        const auto& tensor = memory.get(i);
        step(perf::Image{photographs[i].height, photographs[i].width, tensor.template as<float>()});
    }
}

/// Calls `step(photograph, values)` for each of the photographs that are held, which it only reads.
template <class Memory, class Step>
void read_all(Memory& memory, const std::vector<perf::Photograph>& photographs,
              perf::Generator& generator, Step step) {
    for (const std::size_t i : perf::shuffled(generator, photographs.size())) {
        const auto& tensor = memory.read(i);
        step(photographs[i], std::span<const float>(tensor.template as<const float>()));
    }
}

/// Calls a step that needs two temporary pictures.
template <class Memory, class Step>
void with_temporaries(Memory& memory, const perf::Image& image, Step step) {
    const auto rows = memory.make(image.values.size_bytes());
    const auto blurred = memory.make(image.values.size_bytes());
    step(image, rows.template as<float>(), blurred.template as<float>());
}

/// Holds photographs and develops each of them several times, as workload E does: the pictures that
/// are held are only read.
template <class Memory>
std::uint64_t develop(Memory& memory, const std::vector<perf::Photograph>& photographs) {
    perf::Generator generator(1);
    hold(memory, photographs);
    std::uint64_t hash = 0;
    for (int pass = 0; pass != 3; ++pass) {
        read_all(memory, photographs, generator, [&](const auto& photograph, auto values) {
            const auto copy = memory.make(values.size_bytes());
            const perf::Image developed{photograph.height, photograph.width,
                                        copy.template as<float>()};
            std::ranges::copy(values, developed.values.begin());
            perf::white_balance(developed);
            with_temporaries(memory, developed, perf::denoise);
            with_temporaries(memory, developed, perf::sharpen);
            perf::curve_of_histogram(developed);
            perf::tone_curve(developed);
            hash = perf::hash_of_bytes(developed.values, hash);
        });
    }
    return hash;
}

/// Holds photographs and develops them in place, all of them step by step.
template <class Memory>
std::uint64_t develop_in_place(Memory& memory, const std::vector<perf::Photograph>& photographs) {
    perf::Generator generator(1);
    hold(memory, photographs);
    const auto pass = [&](auto step) { pass_over(memory, photographs, generator, step); };
    std::uint64_t hash = 0;
    pass(perf::white_balance);
    pass([&](const perf::Image& image) { with_temporaries(memory, image, perf::denoise); });
    pass([&](const perf::Image& image) { with_temporaries(memory, image, perf::sharpen); });
    pass(perf::curve_of_histogram);
    pass(perf::tone_curve);
    read_all(memory, photographs, generator, [&](const auto&, std::span<const float> values) {
        hash = perf::hash_of_bytes(values, hash);
    });
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

/// The exit status of a process whose request for memory was refused.
constexpr int exit_of_refused = 2;

/// Calls `work()` in a process of its own, in a new group where the system allows one. `limit` 0
/// is none.
Run run(const std::function<Outcome()>& work, std::size_t limit) {
    const perf::MemoryGroup group("tensorpool_at_rest_" + std::to_string(getpid()));
    const bool has_group = group.problem().empty();
    Run run;
    run.outcome = perf::in_a_child(
        [&] {
            if (has_group && ((limit != 0 && !group.set_limit(limit)) || !group.enter())) _exit(1);
            try {
                return work();
            } catch (const tensorpool::AllocationError& error) {
                std::fprintf(stderr, "%s\n", error.what());
                _exit(exit_of_refused);
            }
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
    return WEXITSTATUS(run.status) == exit_of_refused ? "refused" : "failed";
}

/// A kind of memory, and what the group of its process may have; 0 is no limit.
struct Subject {
    std::string name;
    std::function<Outcome()> work;
    std::size_t limit;
};

perf::Cells row_of(const Subject& subject, const Run& run, std::uint64_t expected) {
    perf::Cells row = {subject.name,
                       end_of(run, expected),
                       "",
                       "",
                       "",
                       "",
                       mebibytes(run.peak_bytes),
                       "",
                       "",
                       "",
                       ""};
    if (!run.outcome) return row;
    row[3] = text(run.outcome->cpu_seconds);
    const StashedMapStatistics& at_rest = run.outcome->at_rest;
    if (at_rest.restores == 0) return row;
    row[7] = text(static_cast<double>(at_rest.stash_ns) * 1e-9);
    row[8] = text(static_cast<double>(at_rest.restore_ns) * 1e-9);
    row[9] = std::to_string(at_rest.stashes) + ", " + std::to_string(at_rest.spills) + ", " +
             std::to_string(at_rest.restores);
    row[10] = mebibytes(at_rest.compressed_bytes) + ", " + mebibytes(at_rest.spilled_bytes);
    return row;
}

/// Measures a job, `work(memory)`, whose tensors are of one type.
template <class Work>
void measure(const perf::Options& options, perf::Report& report, const std::string& name,
             DataType type, Work work, bool with_frozen, bool has_groups) {
    const auto by_malloc = [&] {
        Malloc memory;
        return outcome_of(memory, work);
    };
    const Run first = run(by_malloc, 0);
    if (!first.outcome) {
        report.print_unmeasured(name, "it does not end even without a limit");
        return;
    }
    const auto limit =
        static_cast<std::size_t>(static_cast<double>(first.peak_bytes) / need_of_the_limit);
    std::vector<Subject> subjects = {{"malloc", by_malloc, 0},
                                     {"a pool",
                                      [&] {
                                          Pool memory;
                                          return outcome_of(memory, work);
                                      },
                                      0},
                                     {"a map, limited",
                                      [&] {
                                          Map memory(limit - beside_tensors, type);
                                          return outcome_of(memory, work);
                                      },
                                      limit}};
    if (with_frozen && has_groups)  // it has no budget that could limit it
        subjects.push_back({"frozen in place, limited",
                            [&] {
                                Frozen memory(type);
                                return outcome_of(memory, work);
                            },
                            limit});
    std::vector<Run> runs(subjects.size());
    std::vector<perf::Subject> turn_of;
    for (std::size_t i = 0; i != subjects.size(); ++i) {
        turn_of.emplace_back([&, i] {
            runs[i] = run(subjects[i].work, subjects[i].limit);
            return runs[i].outcome ? runs[i].outcome->seconds : 0;
        });
    }
    const perf::Turns turns(options.rounds, turn_of, false);
    std::vector<perf::Cells> rows = {{"memory from", "ended", "s", "CPU s", "of malloc's time",
                                      "of the pool's time", "peak, MiB", "put to rest, s",
                                      "restored, s", "moves to rest, to files, back",
                                      "at the end: compressed, in files, MiB"}};
    const std::uint64_t expected = first.outcome->result;
    for (std::size_t i = 0; i != subjects.size(); ++i) {
        rows.push_back(row_of(subjects[i], runs[i], expected));
        if (!runs[i].outcome) continue;
        rows.back()[2] = text(turns.median(i));
        for (const std::size_t to : {0, 1}) {
            const double ratio = turns.ratio(i, to);
            rows.back()[4 + to] = subjects[i].limit == 0 ? text(ratio) : report.judge(ratio, 2);
        }
    }
    if (has_groups)
        rows.push_back(
            row_of({"malloc, limited", by_malloc, limit}, run(by_malloc, limit), expected));
    report.print(name + ": needs " + mebibytes(first.peak_bytes) + " MiB, may have " +
                     mebibytes(limit) + (has_groups ? "" : ", by its budget alone"),
                 rows);
    for (std::size_t i = 0; i != subjects.size(); ++i)
        if (!runs[i].outcome || runs[i].outcome->result != expected)
            report.print_unmeasured(name, subjects[i].name + ": " + end_of(runs[i], expected));
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 3);
    perf::Report report(options);
    const std::string problem =
        perf::MemoryGroup("tensorpool_at_rest_" + std::to_string(getpid())).problem();
    if (!problem.empty()) report.print_unmeasured("a limit that the system enforces", problem);

    const bool has_groups = problem.empty();

    const std::vector<perf::Photograph> photographs =
        options.quick ? perf::drawn_photographs(16) : perf::prepared_photographs(PERF_PHOTOGRAPHS);
    if (photographs.empty()) {
        report.print_unmeasured("photographs",
                                "found none in " PERF_PHOTOGRAPHS
                                "; perf/workloads/e_photos.py --prepare decodes them");
    } else {
        measure(
            options, report, "photographs, each developed three times", DataType::of<float>(),
            [&](auto& memory) { return develop(memory, photographs); }, true, has_groups);
        measure(
            options, report, "photographs, all developed step by step", DataType::of<float>(),
            [&](auto& memory) { return develop_in_place(memory, photographs); }, false, has_groups);
    }
    const perf::CacheShape shape =
        options.quick ? perf::CacheShape{20, 4, 512, 512} : perf::CacheShape{40, 8, 512, 512};
    for (const std::size_t tokens : {64, 16, 1}) {
        const std::size_t requests = options.quick ? 4 : 64;
        measure(
            options, report,
            "a cache of keys and values, " + std::to_string(tokens) + " tokens a request",
            DataType{DataCode::bfloat, 0, 16, 1},
            [&](auto& memory) { return answer(memory, shape, requests, tokens); }, false,
            has_groups);
    }
    return report.status();
}
