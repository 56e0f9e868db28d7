/// Question: how long does a phase of work take that uses an arena, and how much does the growth of
/// the arena add?

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/arena.hpp>

#include "support/barrier.hpp"
#include "support/child.hpp"
#include "support/cores.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::Arena;
using tensorpool::ArenaOptions;
using tensorpool::GrowthPolicy;

constexpr std::size_t MiB = std::size_t{1} << 20;
constexpr std::size_t page_bytes = 4096;

/// Writes one byte of each page.
void touch(char* block, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += page_bytes) block[at] = 1;
    perf::opaque(block);
}

long page_faults() {
    rusage usage = {};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

/// Maps memory that nothing has touched; returns nullptr on failure.
char* map(std::size_t bytes) {
    void* const block =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? nullptr : static_cast<char*>(block);
}

// Phases -----------------------------------------------------------------------------------------

/// Phases that allocate and touch pieces of 4 MiB.
class Phases {
public:
    explicit Phases(std::size_t pieces) : pieces_(pieces) {}

    void in_arena() {
        const Arena::Mark mark = arena_.mark();
        for (char*& piece : pieces_) {
            piece = static_cast<char*>(arena_.allocate(piece_bytes));
            touch(piece, piece_bytes);
        }
        arena_.release_to(mark);
    }
    void with_malloc() {
        for (char*& piece : pieces_) {
            piece = static_cast<char*>(std::malloc(piece_bytes));
            if (piece == nullptr) std::abort();
            touch(piece, piece_bytes);
        }
        for (char* piece : pieces_) std::free(piece);
    }

    /// `hold` allocates all pieces from the arena, `touch_held` touches them, and `release` frees
    /// them. Touching other memory would differ by a fifth in either direction, because it lies
    /// elsewhere in the caches.
    void hold() {
        for (char*& piece : pieces_) piece = static_cast<char*>(arena_.allocate(piece_bytes));
    }
    void release() { arena_.reset(); }
    void touch_held() {
        for (char* piece : pieces_) touch(piece, piece_bytes);
    }

private:
    static constexpr std::size_t piece_bytes = 4 * MiB;

    std::vector<char*> pieces_;
    Arena arena_;
};

/// The costs of one subject. The first round is separate, because it touches memory for the first
/// time.
class PhaseCosts {
public:
    /// Runs the first round. Later rounds are measured `count` at a time. If `count` is above 1,
    /// one more round comes before them untimed, because the caches hold another subject's memory.
    PhaseCosts(Phases& phases, void (Phases::*phase)(), int count)
        : phases_(&phases), phase_(phase), count_(count) {
        first_ = measure(1);
    }

    /// Runs `count` later rounds. Returns milliseconds per round.
    double run_later() {
        const double warm_up = count_ > 1 ? measure(1).faults : 0;
        const Cost cost = measure(count_);
        max_later_faults_ = std::max({max_later_faults_, warm_up, cost.faults});
        return cost.milliseconds;
    }
    double first_faults() const { return first_.faults; }
    double first_milliseconds() const { return first_.milliseconds; }
    double max_later_faults() const { return max_later_faults_; }

private:
    struct Cost {
        double faults = 0;
        double milliseconds = 0;
    };
    /// Returns the mean time of `count` rounds, and the sum of their page faults.
    Cost measure(int count) const {
        const long faults_before = page_faults();
        const double seconds = perf::cpu_seconds_of([&] {
            for (int i = 0; i < count; ++i) (phases_->*phase_)();
        });
        return {static_cast<double>(page_faults() - faults_before), seconds * 1e3 / count};
    }

    Phases* phases_;
    void (Phases::*phase_)();
    int count_;
    Cost first_;
    double max_later_faults_ = 0;
};

void measure_phases(const perf::Options& options, perf::Report& report) {
    const std::size_t bytes = (options.quick ? 16 : 1024) * MiB;
    Phases phases(bytes / (4 * MiB));
    PhaseCosts arena(phases, &Phases::in_arena, 8), glibc(phases, &Phases::with_malloc, 1);
    phases.hold();
    PhaseCosts held(phases, &Phases::touch_held, 8);
    phases.release();
    const perf::Turns turns(options.rounds,
                            {[&] {
                                 phases.hold();
                                 const double ms = held.run_later();
                                 phases.release();
                                 return ms;
                             },
                             [&] { return arena.run_later(); }, [&] { return glibc.run_later(); }});
    const auto later = [&](std::size_t i) { return text(turns.median(i)); };
    report.print(
        "phase: " + std::to_string(bytes / MiB) + " MiB in pieces of 4 MiB, again and again",
        {{"each page touched", "pieces that are held", "arena", "malloc, free"},
         {"page faults, first round", "–", text(arena.first_faults(), 0),
          text(glibc.first_faults(), 0)},
         {"page faults, most in a later round", text(held.max_later_faults(), 0),
          report.judge(arena.max_later_faults(), 0, 0), text(glibc.max_later_faults(), 0)},
         {"first round, ms", "–", text(arena.first_milliseconds()),
          text(glibc.first_milliseconds())},
         {"later round, ms", later(0), later(1), later(2)},
         {"later round, of touching held ones", "1.00", text(turns.ratio(1, 0)),
          text(turns.ratio(2, 0))}});
}

// Growth -----------------------------------------------------------------------------------------

struct GrowthCosts {
    double grow_ms = 0;   ///< growth and touching
    double touch_ms = 0;  ///< touching as much memory that was mapped at once
    double growths = 0;
};

/// Grows to `bytes` in steps of 1 MiB, and holds and touches every block. Each 64 MiB of growth
/// alternate with 64 MiB of touching alone, before or after by turns, because the cost of a first
/// touch changes within seconds on a virtual machine.
GrowthCosts grow_and_touch(std::size_t bytes, const GrowthPolicy& policy) {
    constexpr std::size_t slice = 64;
    std::vector<char*> held(bytes / MiB);
    GrowthCosts costs;
    char* memory = nullptr;
    costs.touch_ms += 1e3 * perf::cpu_seconds_of([&] { memory = map(bytes); });
    if (memory == nullptr) std::abort();
    std::optional<Arena> arena;
    costs.grow_ms += 1e3 * perf::cpu_seconds_of([&] {
                         arena.emplace(ArenaOptions{.max_capacity = 2 * bytes, .growth = policy});
                     });
    for (std::size_t first = 0; first < held.size(); first += slice) {
        const auto grow_ms = [&] {
            return 1e3 * perf::cpu_seconds_of([&] {
                       for (std::size_t i = first; i < first + slice; ++i) {
                           held[i] = static_cast<char*>(arena->allocate(MiB));
                           touch(held[i], MiB);
                       }
                   });
        };
        const bool grow_first = first / slice % 2 == 0;
        if (grow_first) costs.grow_ms += grow_ms();
        costs.touch_ms += 1e3 * perf::cpu_seconds_of([&] {
                              for (std::size_t i = first; i < first + slice; ++i)
                                  touch(memory + i * MiB, MiB);
                          });
        if (!grow_first) costs.grow_ms += grow_ms();
    }
    costs.growths = static_cast<double>(arena->statistics().growths);
    return costs;
}

/// Grows to `bytes` in steps of 1 MiB without touching the blocks.
GrowthCosts grow_alone(std::size_t bytes, const GrowthPolicy& policy) {
    std::vector<char*> held(bytes / MiB);
    return {.grow_ms = 1e3 * perf::cpu_seconds_of([&] {
                           static Arena arena({.max_capacity = 2 * bytes, .growth = policy});
                           for (char*& block : held)
                               block = static_cast<char*>(arena.allocate(MiB));
                           char** blocks = held.data();
                           perf::opaque(blocks);
                       })};
}

/// The values of one growth policy, one for each round.
class Growths {
public:
    Growths(std::size_t bytes, const GrowthPolicy& policy) : bytes_(bytes), policy_(policy) {}

    /// Runs one round in new processes, which have touched nothing before. Returns false if one
    /// fails.
    bool run_one() {
        const auto both = perf::in_a_child([&] { return grow_and_touch(bytes_, policy_); });
        const auto alone = perf::in_a_child([&] { return grow_alone(bytes_, policy_); });
        if (!both || !alone) return false;
        touch_ms.push_back(both->touch_ms);
        grow_ms.push_back(both->grow_ms);
        ratios.push_back(both->grow_ms / both->touch_ms);
        alone_ms.push_back(alone->grow_ms);
        count = both->growths;
        return true;
    }

    std::vector<double> touch_ms, grow_ms, ratios, alone_ms;
    double count = 0;

private:
    std::size_t bytes_;
    GrowthPolicy policy_;
};

void measure_growth(const perf::Options& options, perf::Report& report) {
    const std::size_t mib = options.quick ? 128 : 4096;
    const std::string title = "growth: from 8 MiB to " + std::to_string(mib) +
                              " MiB in steps of 1 MiB, each page touched";
    std::vector<perf::Cells> rows = {{"growth", "growths", "touching alone, ms", "growing, ms",
                                      "of touching", "of touching, all rounds",
                                      "without touching, ms"}};
    const auto with_range = [](const std::vector<double>& values) {
        return text(perf::median(values), 0) + " (" + text(perf::quantile(values, 0), 0) + " to " +
               text(perf::quantile(values, 1), 0) + ")";
    };
    Growths policies[] = {
        {mib * MiB, GrowthPolicy::conservative()},
        {mib * MiB, {.step = MiB, .factor = 0, .fraction = 0.75}},
    };
    for (int round = 0; round < options.rounds; ++round) {
        for (Growths& growths : policies) {
            if (!growths.run_one()) return report.print_unmeasured(title, "a process failed");
        }
    }
    for (const Growths& growths : policies) {
        rows.push_back({&growths == policies ? "conservative, the default" : "1 MiB",
                        text(growths.count, 0), with_range(growths.touch_ms),
                        with_range(growths.grow_ms),
                        report.judge(perf::median(growths.ratios), 1.10),
                        text(perf::quantile(growths.ratios, 0)) + " to " +
                            text(perf::quantile(growths.ratios, 1)),
                        text(perf::median(growths.alone_ms), 1)});
    }
    report.print(title, rows);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 5);
    perf::Report report(options);
    perf::stay_on_core(0);
    measure_growth(options, report);
    measure_phases(options, report);
    return report.status();
}
