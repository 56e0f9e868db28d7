#include <algorithm>

#include "common/options.hpp"
#include "common/output.hpp"
#include "doctor/diagnosis.hpp"
#include "doctor/machine.hpp"

namespace tensorpool::command {
namespace {

int examine(const Settings& settings) {
    const std::vector<Diagnosis> diagnoses = diagnose(examine_machine(), sizes_of(settings));
    if (settings.json) {
        for (const Diagnosis& diagnosis : diagnoses) print_line(diagnosis_json(diagnosis));
    } else {
        std::string text = diagnosis_text(diagnoses);
        text.pop_back();
        print_line(text);
    }
    const bool sound = std::ranges::none_of(
        diagnoses, [](const Diagnosis& d) { return d.verdict == Verdict::wrong; });
    return sound ? success : finding;
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool doctor                     before a program is tuned\n"
    "  tensorpool doctor --json | jq 'select(.verdict == \"wrong\")'\n"
    "\n"
    "Measures page faults (about 20 ms) and reads settings; changes nothing. Results\n"
    "are fine, note (worth knowing) or wrong; if any is wrong, the status is 1.";

constexpr const char* details =
    "The limits are those of this command, which programs started from the same shell share. A "
    "service or a container may have others, so run the command there. It checks the time of a "
    "page fault, transparent huge pages and their smaller sizes, memory and the cgroup's "
    "limit, "
    "overcommit, the limits of address space and locked memory, memory nodes, settings that "
    "keep statistics from readers, and the requirements of each subcommand.\n";

}  // namespace

CLI::App* add_doctor(CLI::App& app, Settings& settings) {
    CLI::App* const command = add_subcommand(
        app, settings,
        {"doctor", "Report what this machine costs, allows and lacks", footer, details},
        [&settings] { return examine(settings); });
    add_output_options(*command, settings);
    return command;
}

}  // namespace tensorpool::command
