#pragma once

#include <cstdint>
#include <string>

namespace tensorpool::stress {

/// What the program is told; the defaults are the short form.
struct CommandLine {
    std::uint64_t seed = 1;
    unsigned rounds = 2;
    unsigned minutes = 0;  // if not 0: rounds until then
    unsigned threads = 3;
    unsigned lives = 8;
    unsigned calls = 2000;  // in each life
    bool map = false;
    std::string plant;
};

/// Prints and exits for --help; throws std::invalid_argument for what it does not know.
CommandLine command_line_from(int count, char** arguments);

}  // namespace tensorpool::stress
