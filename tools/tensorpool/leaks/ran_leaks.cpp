#include "leaks/ran_leaks.hpp"

#include <map>
#include <utility>

#include "run/start.hpp"

namespace tensorpool::command::leaks {

RanLeaks run_and_observe(const std::vector<std::string>& program,
                         const std::vector<std::string>& with, const Pace& pace) {
    RanLeaks ran;
    std::map<const StatisticsReader*, Watch> watches;
    run::Family::Looks looks;
    looks.live = [&](StatisticsReader& process) {
        Watch& watch = watches.try_emplace(&process, pace).first->second;
        if (!watch.is_complete()) watch.look(process);
    };
    looks.longest_pause_ms = static_cast<int>(between_looks.count());
    looks.last = [&](StatisticsReader& process) {
        const auto watch = watches.find(&process);
        if (watch == watches.end()) return;
        if (watch->second.observation().profiles() > ran.observation.profiles()) {
            ran.observation = watch->second.observation();
        }
        watches.erase(watch);
    };
    run::Arguments arguments;
    arguments.with = with;
    arguments.report = "none";
    arguments.program = program;
    ran.outcome = run::run_and_report(arguments, false, looks);
    return ran;
}

}  // namespace tensorpool::command::leaks
