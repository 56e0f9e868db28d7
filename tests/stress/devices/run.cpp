#include "stress/devices/run.hpp"

#include <algorithm>
#include <exception>

#include "stress/devices/round.hpp"
#include "stress/devices/violation.hpp"

namespace tensorpool::stress::devices {
namespace {

// Each round has new devices of another kind. A round is long enough for memory to become scarce.
constexpr std::uint64_t operations_per_round = 5000;

void run_round(std::uint64_t seed, Schedule schedule, std::uint64_t operations,
               const PlantedFault* fault, Finding& finding) {
    Round round(seed, schedule, fault);
    for (std::uint64_t i = 0; i < operations; ++i) {
        ++finding.operations;
        round.step();
    }
    round.finish();
}

}  // namespace

Finding run(std::uint64_t seed, Schedule schedule, std::uint64_t operations,
            const PlantedFault* fault) {
    Finding finding;
    try {
        while (finding.operations < operations) {
            const std::uint64_t left = operations - finding.operations;
            run_round(seed * 1'000'003 + finding.rounds, schedule,
                      std::min(left, operations_per_round), fault, finding);
            ++finding.rounds;
        }
    } catch (const Violation& violation) {
        finding.text = violation.what();
        finding.hazard = violation.hazard();
    } catch (const std::exception& error) {
        finding.text = std::string("thrown: ") + error.what();
    }
    return finding;
}

}  // namespace tensorpool::stress::devices
