#pragma once

#include <cstdint>
#include <string>

namespace tensorpool::stress {

/// The options of the program. The defaults are the short form.
struct CommandLine {
    std::uint64_t seed = 1;
    unsigned rounds = 2;
    unsigned minutes = 0;  // if not 0: the time for which rounds are started
    unsigned threads = 3;
    unsigned lives = 8;
    unsigned calls = 2000;  // of each thread
    unsigned shards = 0;    // if not 0: into which threads are divided, and between which they move
    bool map = false;
    std::string plant;
};

/// Prints the help and exits for --help. Throws std::invalid_argument for unknown options.
CommandLine command_line_from(int count, char** arguments);

}  // namespace tensorpool::stress
