#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <tensorpool/statistics_reader.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "stat/process_list.hpp"

namespace tensorpool::command {
namespace {

/// Wider than any terminal, so that piped output loses no column.
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
        print_error(
            "No process with a pool is visible; `tensorpool doctor` shows "
            "possible reasons.");
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
        app.add_subcommand("ls", "List the processes that have pools, and their memory");
    add_output_options(*command, settings);
    command->footer(
        "Examples:\n"
        "  tensorpool ls              the memory of each process\n"
        "  sudo tensorpool ls         the processes of all users\n"
        "  tensorpool ls --json | jq -r 'select(.capacity_bytes > 1e9).process'\n"
        "\n"
        "Processes that cannot be read are listed with the reason. If\n"
        "TENSORPOOL_STATISTICS_DIR is set, files of ended processes are removed from it.");
    settings.details["ls"] =
        "NAME is the process's name in the kernel. POOLS and ARENAS are present counts; ARENAS "
        "includes scratches and planned arenas. IN USE is the memory in use by callers, CAPACITY "
        "the committed memory, and PEAK the sum of the peaks, which may have occurred at different "
        "times. LIMIT is the sum of the limits, or \"none\" if one of the objects has no limit. "
        "DEVICES counts allocators of device memory and of pinned memory. DEV USE is their memory "
        "in use, and DEV CAP the size of their slabs; the other sizes do not include these.\n";
    command->callback([&settings] { settings.run = [&settings] { return list(settings); }; });
    return command;
}

}  // namespace tensorpool::command
