// A program whose processes fork, end and are killed. run.py runs it.
//
// usage: process_lives pool|malloc WHAT [ARGUMENT [SEED]]

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "blocks.hpp"
#include "lives.hpp"

int main(int count, char** arguments) {
    using namespace processes;
    if (count < 3 || !choose_source(arguments[1])) return 2;
    const std::string_view what = arguments[2];
    const char* const argument = count > 3 ? arguments[3] : "0";
    const auto number = static_cast<unsigned>(std::atoi(argument));
    const auto seed = static_cast<unsigned>(count > 4 ? std::atoi(arguments[4]) : 0);
    if (what == "fork") return fork_at_work(number);
    if (what == "first") return fork_at_first_allocation(number);
    if (what == "end") return end_at_work(argument, seed);
    if (what == "threads") return run_many_threads(number);
    if (what == "watched") return run_until_killed();
    if (what == "read") return read_until_ended(number);
    if (what == "clock") return run_with_jumping_clock(number);
    if (what == "small_stacks") return run_small_stacks();
    if (what == "measure_stacks") return measure_stacks();
    std::fprintf(stderr, "process_lives: it cannot do '%s'\n", arguments[2]);
    return 2;
}
