#include "profile/ran_profile.hpp"

#include <utility>

#include "run/start.hpp"

namespace tensorpool::command::profile {

RanProfile run_and_profile(const std::vector<std::string>& program,
                           const std::vector<std::string>& with) {
    RanProfile ran;
    const auto look = [&](StatisticsReader& process) {
        HeapProfile profile = process.heap_profile();
        if (ran.profile) ++ran.others;
        if (!ran.profile || profile.peak_bytes > ran.profile->peak_bytes) {
            ran.profile = std::move(profile);
        }
    };
    run::Arguments arguments;
    arguments.with = with;
    arguments.report = "none";
    arguments.program = program;
    ran.outcome = run::run_and_report(arguments, false, {.last = look, .live = {}});
    return ran;
}

}  // namespace tensorpool::command::profile
