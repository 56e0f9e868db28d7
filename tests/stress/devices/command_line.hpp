#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/device/simulation_options.hpp>

namespace tensorpool::stress::devices {

/// The options of the program. The defaults are the short form.
struct CommandLine {
    std::vector<std::uint64_t> seeds = {1};
    std::vector<Schedule> schedules = {Schedule::eager, Schedule::lazy, Schedule::random};
    std::uint64_t operations = 10'000;  ///< for each seed and schedule
    std::string plant;
};

const char* to_string(Schedule schedule) noexcept;
/// Prints the help and exits for --help. Throws std::invalid_argument for unknown options.
CommandLine command_line_from(int count, char** arguments);

}  // namespace tensorpool::stress::devices
