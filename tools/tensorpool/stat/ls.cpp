#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <tensorpool/statistics_reader.hpp>

#include "common/output.hpp"
#include "common/target.hpp"
#include "options.hpp"
#include "stat/process_list.hpp"
#include "subcommands.hpp"

namespace tensorpool::command {
namespace {

/// As wide as anybody's terminal: what is piped on is not to lose a column.
constexpr std::size_t width = 400;

ListedProcess look_at(ObservedProcess process) {
    if (!process.readable) return {std::move(process), std::nullopt};
    try {
        ProcessSnapshot snapshot = StatisticsReader::attach(process.process).snapshot();
        return {std::move(process), std::move(snapshot)};
    } catch (const AttachError& error) {
        process.problem = error.what();
        return {std::move(process), std::nullopt};
    }
}

int list(const Settings& settings) {
    StatisticsReader::remove_dead();
    std::vector<ListedProcess> processes;
    for (ObservedProcess& process : StatisticsReader::list()) {
        processes.push_back(look_at(std::move(process)));
    }
    if (settings.json) {
        for (const ListedProcess& process : processes) print_line(list_json(process));
    } else if (processes.empty()) {
        fmt::print(stderr,
                   "No process that can be seen holds a pool; `tensorpool doctor` tells "
                   "what hinders.\n");
    } else {
        std::string text = list_text(processes, sizes_of(settings), width);
        text.pop_back();
        print_line(text);
    }
    return success;
}

}  // namespace

CLI::App* add_ls(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("ls", "List the processes that hold pools, and what they hold");
    add_output_options(*command, settings);
    command->footer(
        "Examples:\n"
        "  tensorpool ls              who holds how much\n"
        "  sudo tensorpool ls         the processes of all users\n"
        "  tensorpool ls --json | jq -r 'select(.capacity_bytes > 1e9).process'\n"
        "\n"
        "Processes that cannot be read are listed with the reason. Where\n"
        "TENSORPOOL_STATISTICS_DIR is set, files of ended processes are removed from it.");
    settings.details["ls"] =
        "NAME is the process's own as the system has it. POOLS and ARENAS count what is there "
        "now, scratches and planned arenas among the arenas. IN USE is what callers hold, CAPACITY "
        "what is "
        "committed, PEAK the sum of each one's own peak, which need not have been at the same "
        "time; LIMIT is what all together may grow to, \"none\" where one of them has no limit. "
        "DEVICES "
        "counts allocators of device memory and of pinned memory, DEV USE is what callers hold of "
        "them, DEV CAP what their slabs take; the other sizes are without these.\n";
    command->callback([&settings] { settings.run = [&settings] { return list(settings); }; });
    return command;
}

}  // namespace tensorpool::command
