#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>

#include "stress/report.hpp"
#include "stress/round.hpp"
#include "support/forced_shards.hpp"

namespace {

using namespace tensorpool::stress;

// The number of rounds is fixed, except in the long form, which runs for a time.
void run(const CommandLine& line) {
    const auto ends = std::chrono::steady_clock::now() + std::chrono::minutes(line.minutes);
    const auto goes_on = [&](unsigned rounds) {
        return line.minutes == 0 ? rounds < line.rounds : std::chrono::steady_clock::now() < ends;
    };
    for (unsigned round = 0; goes_on(round); ++round) {
        run_round(line, line.seed + round);
        std::printf("pool_stress: round %u, seed %zu: nothing wrong\n", round + 1,
                    std::size_t{line.seed + round});
        std::fflush(stdout);
    }
}

}  // namespace

int main(int count, char** arguments) {
    try {
        const CommandLine line = command_line_from(count, arguments);
        expect_planted_fault(line.plant);
        std::optional<tensorpool::testing::ForcedShards> forced;
        if (line.shards != 0) forced.emplace(line.shards);
        run(line);
        if (line.plant.empty()) return 0;
        std::printf("pool_stress: the planted fault was not found\n");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "pool_stress: %s\n", error.what());
    }
    return 1;
}
