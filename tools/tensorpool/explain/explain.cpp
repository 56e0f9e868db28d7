#include <fmt/format.h>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "explain/explanation.hpp"

namespace tensorpool::command {
namespace {

int explain_process(const Settings& settings) {
    StatisticsReader process = attach_chosen(settings);
    const ProcessSnapshot snapshot = process.snapshot();
    if (!snapshot.pools.empty() && snapshot.pool_addresses.bytes == 0) {
        throw CommandError(
            finding, fmt::format("process {} does not publish where its pools lie: expected one "
                                 "that uses a tensorpool with this command, or whose pools hold "
                                 "memory",
                                 snapshot.process));
    }
    explain::Explanation explanation =
        explain::explain(snapshot, explain::read_memory_map(process.process()),
                         explain::memory_of(process.process()));
    add_sites(explanation, profile::name_frames(process.heap_profile(), profile::Value::live));
    print_line(settings.json ? to_json(explanation) : to_text(explanation, sizes_of(settings)));
    return success;
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool explain --pid 4711\n"
    "  tensorpool explain --name train --json | jq '.rows[0]'";

constexpr const char* details =
    "Each row is a part of the resident memory, and the rows add up to it. \"can shrink\" is what "
    "the call or command in the last column gives back to the system. \"kept by\" says why free "
    "memory was not given back: free pages and large blocks stay for the retention period "
    "(RetentionPolicy, TENSORPOOL_RETAIN_MS), then until the next slow path of a pool or the "
    "background trimmer.\n"
    "\n"
    "What is free in pools is known from their statistics. What else is resident in their "
    "addresses counts as blocks in use, up to their bytes. Arenas and scratches count as touched "
    "up to their highest use. Where free small blocks fill whole pages of spans, these are counted "
    "exactly. How many of the blocks in magazines and depots do is estimated.\n"
    "\n"
    "The tables below the first one divide its blocks in use once more. Call sites are estimates "
    "from the heap profile, scaled down where their sum would exceed what is in use. A scope shows "
    "what its ended runs allocated minus what they freed: blocks that are freed outside of the "
    "scope still count, and open scopes do not.\n"
    "\n"
    "Large blocks of malloc are recognized by their first words, if the system lets this user read "
    "the memory of the process. Otherwise they count as other mappings. In a process with Python, "
    "anonymous mappings of 1 MiB and more that are nothing else count as its small objects.\n"
    "\n"
    "The process is not stopped. If it allocates at that moment, rows may differ by what changed "
    "between two reads.\n";

}  // namespace

CLI::App* add_explain(CLI::App& app, Settings& settings) {
    CLI::App* const command = add_subcommand(
        app, settings,
        {"explain", "Say what the resident memory of a process consists of", footer, details},
        [&settings] { return explain_process(settings); });
    add_process_options(*command, settings);
    add_output_options(*command, settings);
    return command;
}

}  // namespace tensorpool::command
