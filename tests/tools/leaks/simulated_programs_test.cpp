/// @file
/// Judges programs whose allocations are sampled with fixed seeds.

#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "leaks/observation.hpp"
#include "tools/leaks/simulated_program.hpp"

namespace tensorpool::command::leaks {
namespace {

using testing::Iteration;
using testing::SimulatedProgram;

constexpr unsigned repetitions = 100;
constexpr double mean = SimulatedProgram::interval;
constexpr double small = 16 << 10;
constexpr double large = 2 * mean;

Judgement judged(const Observation& observation) {
    return judge(observation.sites().at(1), mean);
}

/// Returns how often the verdict is `verdict`. `make` makes the program of one repetition.
unsigned count(Verdict verdict, const std::function<Iteration()>& make, unsigned before = 1) {
    unsigned found = 0;
    for (unsigned seed = 1; seed <= repetitions; ++seed) {
        if (judged(testing::observe(seed, make(), before)).verdict == verdict) ++found;
    }
    return found;
}

/// Counts for a program that keeps nothing of its own between iterations.
unsigned count(Verdict verdict, const Iteration& iteration, unsigned before = 1) {
    return count(verdict, std::function<Iteration()>([&] { return iteration; }), before);
}

Iteration leak_of(double bytes, double block) {
    return [=](SimulatedProgram& program, unsigned) { program.allocate(bytes, block); };
}

/// Frees everything every `period` iterations.
Iteration sawtooth(unsigned period, unsigned phase, double block) {
    return [=](SimulatedProgram& program, unsigned i) {
        if ((i + phase) % period == 0) program.free_to(0);
        program.allocate(8 * mean, block);
    };
}

/// Keeps `bytes` of each iteration, and replaces other blocks of the same site.
Iteration leak_beside(double bytes, double replaced, double block) {
    return [=, kept = std::size_t{0}](SimulatedProgram& program, unsigned) mutable {
        program.free_to(kept);
        program.allocate(bytes, block);
        kept = program.blocks();
        program.allocate(replaced, block);
    };
}

/// Keeps a block for each of `shapes` random shapes.
Iteration dictionary(unsigned shapes) {
    return [=, seen = std::set<unsigned>()](SimulatedProgram& program, unsigned) mutable {
        const auto shape = static_cast<unsigned>(program.random() * shapes);
        if (seen.insert(shape).second) program.allocate(large, large);
    };
}

TEST(SimulatedPrograms, BlocksReplacedInEachIterationAreNoLeak) {
    for (const double block : {small, large}) {
        for (const double bytes : {4 * mean, 16 * mean, 100 * mean, 400 * mean}) {
            const Iteration replace = [=](SimulatedProgram& program, unsigned) {
                program.free_to(0);
                program.allocate(bytes, block);
            };
            EXPECT_GE(count(Verdict::steady, replace), 97U) << block << ' ' << bytes;
            EXPECT_EQ(count(Verdict::leak, replace), 0U) << block << ' ' << bytes;
        }
    }
}

TEST(SimulatedPrograms, BatchesOfRandomSizesAreNoLeak) {
    const Iteration batch = [](SimulatedProgram& program, unsigned) {
        const double bytes = (10 + 90 * program.random()) * mean;
        program.free_to(0);
        program.allocate(bytes, bytes);
    };
    EXPECT_EQ(count(Verdict::leak, batch), 0U);
    EXPECT_GE(count(Verdict::steady, batch), 90U);
}

TEST(SimulatedPrograms, MemoryFreedOnceInTheWindowIsNoLeak) {
    for (const double block : {small, large}) {
        for (unsigned period = 2; period <= 20; ++period) {
            for (unsigned phase = 0; phase < period; ++phase) {
                const Observation observation =
                    testing::observe(phase, sawtooth(period, phase, block), period);
                EXPECT_NE(judged(observation).verdict, Verdict::leak) << period << ' ' << phase;
            }
        }
    }
}

TEST(SimulatedPrograms, CyclesThatACollectorFreesNowAndThenAreNoLeak) {
    const Iteration cycles = [](SimulatedProgram& program, unsigned) {
        if (program.random() < 0.4) program.free_oldest(program.blocks() * 3 / 4);
        program.allocate(8 * mean, large);
    };
    EXPECT_EQ(count(Verdict::leak, cycles, 30), 0U);
}

TEST(SimulatedPrograms, QueuesOfRandomLengthAreNoLeak) {
    const Iteration queue = [](SimulatedProgram& program, unsigned) {
        if (program.random() >= 0.5) {
            program.free_oldest(1);
        } else if (program.blocks() < 16) {
            program.allocate(large, large);
        }
    };
    EXPECT_EQ(count(Verdict::leak, queue), 0U);
}

TEST(SimulatedPrograms, WorkspacesOfTheLargestBatchAreNoLeak) {
    const auto workspace = [] {
        return [largest = 0.0](SimulatedProgram& program, unsigned) mutable {
            const double bytes = (10 + 90 * program.random()) * mean;
            if (bytes <= largest) return;
            largest = bytes;
            program.free_to(0);
            program.allocate(bytes, bytes);
        };
    };
    EXPECT_EQ(count(Verdict::leak, std::function<Iteration()>(workspace)), 0U);
}

TEST(SimulatedPrograms, GrowthInTheFirstIterationsIsAWarmUp) {
    for (const unsigned growing : {1U, 3U, 5U}) {
        for (const double block : {small, large}) {
            const Iteration warm_up = [=](SimulatedProgram& program, unsigned i) {
                if (i <= growing) program.allocate(40 * mean / growing, block);
            };
            EXPECT_GE(count(Verdict::warm_up, warm_up), 98U) << growing << ' ' << block;
            EXPECT_EQ(count(Verdict::leak, warm_up), 0U) << growing << ' ' << block;
        }
    }
}

TEST(SimulatedPrograms, GrowthThatSlowsDownIsACache) {
    for (const double bytes : {60 * mean, 200 * mean}) {
        const Iteration cache = [=](SimulatedProgram& program, unsigned i) {
            program.allocate(bytes * std::exp(-(i / 4.0)) * (1 - std::exp(-0.25)), 8192);
        };
        EXPECT_GE(count(Verdict::cache, cache) + count(Verdict::warm_up, cache), 99U) << bytes;
        EXPECT_EQ(count(Verdict::leak, cache), 0U) << bytes;
    }
}

TEST(SimulatedPrograms, DictionariesOfTenShapesAreNoLeak) {
    for (const unsigned shapes : {2U, 4U, 6U, 8U, 10U}) {
        EXPECT_EQ(
            count(Verdict::leak, std::function<Iteration()>([=] { return dictionary(shapes); })),
            0U)
            << shapes;
    }
}

TEST(SimulatedPrograms, LeaksAbove16SamplingMeansAreFound) {
    for (const double growth : {32 * mean, 64 * mean, 1000 * mean}) {
        for (const double block : {4096.0, 65536.0}) {
            const Iteration leak = leak_of(growth / 20 + 1, block * growth / (64 * mean));
            EXPECT_GE(count(Verdict::leak, leak), 95U) << growth << ' ' << block;
        }
    }
    EXPECT_GE(count(Verdict::leak, leak_of(large, large)), 99U);
}

TEST(SimulatedPrograms, AlmostAllLeaksAreFoundOnceTheirEstimateIsLargeEnough) {
    unsigned above = 0;
    unsigned found = 0;
    for (unsigned seed = 1; seed <= 4 * repetitions; ++seed) {
        const Judgement of = judged(testing::observe(seed, leak_of(mean, 8192)));
        if (of.growth < 16 * mean) {
            EXPECT_NE(of.verdict, Verdict::leak);
            continue;
        }
        ++above;
        if (of.verdict == Verdict::leak) ++found;
    }
    EXPECT_GE(above, 3 * repetitions);
    EXPECT_GE(found * 100, above * 93);
}

TEST(SimulatedPrograms, LeaksOfRandomSizesAreFound) {
    const Iteration leak = [](SimulatedProgram& program, unsigned) {
        const double bytes = (1 + 8 * program.random()) * mean;
        program.allocate(bytes, bytes);
    };
    EXPECT_GE(count(Verdict::leak, leak), 98U);
}

TEST(SimulatedPrograms, LeaksBesideReplacedBlocksAreFound) {
    const auto count_beside = [](double growth, double replaced) {
        return count(Verdict::leak, std::function<Iteration()>(
                                        [=] { return leak_beside(growth / 20, replaced, large); }));
    };
    EXPECT_GE(count_beside(64 * large, 8 * large), 95U);
    EXPECT_GE(count_beside(400 * large, 100 * large), 95U);
}

}  // namespace
}  // namespace tensorpool::command::leaks
