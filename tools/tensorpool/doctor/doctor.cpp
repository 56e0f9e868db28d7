#include <algorithm>

#include <CLI/CLI.hpp>

#include "common/output.hpp"
#include "doctor/diagnosis.hpp"
#include "doctor/machine.hpp"
#include "options.hpp"
#include "subcommands.hpp"

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

}  // namespace

CLI::App* add_doctor(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("doctor", "Tell what this machine costs, allows and lacks");
    add_output_options(*command, settings);
    command->footer(
        "Examples:\n"
        "  tensorpool doctor                     before a program is tuned or blamed\n"
        "  tensorpool doctor --json | jq 'select(.verdict == \"wrong\")'\n"
        "\n"
        "Measures page faults (some 20 ms), and reads settings; changes nothing. Says\n"
        "what is fine, what to know (note) and what is wrong; then the status is 1.");
    settings.details["doctor"] =
        "Limits are those of this command, which programs started from the same shell share; a "
        "service or a container may have others, so run it there. Looked at are the time of a "
        "page fault, transparent huge pages and their smaller sizes, memory and the cgroup's "
        "limit, overcommit, the "
        "limits of address space and locked memory, memory nodes, what keeps figures from "
        "readers, and what each subcommand needs.\n";
    command->callback([&settings] { settings.run = [&settings] { return examine(settings); }; });
    return command;
}

}  // namespace tensorpool::command
