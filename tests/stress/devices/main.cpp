#include <cstdio>
#include <exception>

#include "stress/devices/command_line.hpp"
#include "stress/devices/run.hpp"

namespace {

using namespace tensorpool::stress::devices;

/// Prints what was found, and how to reproduce it.
void print(const Finding& finding, std::uint64_t seed, tensorpool::Schedule schedule,
           const PlantedFault* fault) {
    const char* const name = to_string(schedule);
    const auto operations = static_cast<unsigned long long>(finding.operations);
    if (finding.text.empty()) {
        std::printf(
            "device_stress: seed %llu, %s: %llu operations on %llu sets of devices: "
            "nothing wrong\n",
            static_cast<unsigned long long>(seed), name, operations,
            static_cast<unsigned long long>(finding.rounds));
    } else {
        std::printf("device_stress: %s: seed %llu, %s, operation %llu: %s\n",
                    fault != nullptr ? "the planted fault is found" : "FAULT",
                    static_cast<unsigned long long>(seed), name, operations, finding.text.c_str());
    }
    std::fflush(stdout);
}

/// Returns 0 if nothing was found, or if the planted fault was.
int run_all(const CommandLine& line) {
    const PlantedFault* const fault = planted_fault(line.plant);
    for (const std::uint64_t seed : line.seeds) {
        for (const tensorpool::Schedule schedule : line.schedules) {
            const Finding finding = run(seed, schedule, line.operations, fault);
            print(finding, seed, schedule, fault);
            if (!finding.text.empty()) return fault != nullptr ? 0 : 1;
        }
    }
    if (fault != nullptr) std::printf("device_stress: the planted fault was not found\n");
    return fault != nullptr ? 1 : 0;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return run_all(command_line_from(count, arguments));
    } catch (const std::exception& error) {
        std::fprintf(stderr, "device_stress: %s\n", error.what());
    }
    return 1;
}
