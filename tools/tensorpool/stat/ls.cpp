#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/table.hpp"
#include "common/target.hpp"
#include "stat/process_list.hpp"

namespace tensorpool::command {
namespace {

std::vector<Cell> cells_of(const ListedProcess& listed, Sizes sizes) {
    const Totals totals = add_up(*listed.snapshot);
    const std::string limit =
        totals.limit_bytes == 0 ? "none" : format_size(totals.limit_bytes, sizes);
    return {{shown_name(listed.process.name, listed.process.process)},
            {std::to_string(listed.process.process)},
            {std::to_string(listed.snapshot->pools.size())},
            {std::to_string(listed.snapshot->arenas.size() + listed.snapshot->scratches.size() +
                            listed.snapshot->planned.size())},
            {format_size(totals.in_use_bytes, sizes)},
            {format_size(totals.capacity_bytes, sizes)},
            {format_size(totals.peak_bytes, sizes)},
            {limit},
            {std::to_string(listed.snapshot->devices.size())},
            {format_size(totals.device_in_use_bytes, sizes)},
            {format_size(totals.device_capacity_bytes, sizes)}};
}

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
            "No process with a pool is visible; `tensorpool doctor` shows possible reasons.");
    } else {
        print_text(list_text(processes, sizes_of(settings), any_width));
    }
    return success;
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool ls              the memory of each process\n"
    "  sudo tensorpool ls         the processes of all users\n"
    "  tensorpool ls --json | jq -r 'select(.capacity_bytes > 1e9).process'\n"
    "\n"
    "Processes that cannot be read are listed with the reason. If\n"
    "TENSORPOOL_STATISTICS_DIR is set, files of ended processes are removed from it.";

constexpr const char* details =
    "NAME is the process's name in the kernel. POOLS and ARENAS are present counts; ARENAS "
    "includes scratches and planned arenas. IN USE is the memory in use by callers, CAPACITY "
    "the committed memory, and PEAK the sum of the peaks, which may have occurred at different "
    "times. LIMIT is the sum of the limits, or \"none\" if one of the objects has no limit. "
    "DEVICES counts allocators of device memory and of pinned memory. DEV USE is their memory "
    "in use, and DEV CAP the size of their slabs; the other sizes do not include these.\n";

}  // namespace

std::string list_text(const std::vector<ListedProcess>& processes, Sizes sizes, std::size_t width) {
    Table table;
    table.columns = {{"NAME", Side::left}, {"PID"},      {"POOLS"},  {"ARENAS"},
                     {"IN USE"},           {"CAPACITY"}, {"PEAK"},   {"LIMIT"},
                     {"DEVICES"},          {"DEV USE"},  {"DEV CAP"}};
    std::string refused;
    for (const ListedProcess& listed : processes) {
        if (listed.snapshot) {
            table.rows.push_back(cells_of(listed, sizes));
        } else {
            refused += fmt::format("{} ({}) cannot be read: {}\n", listed.process.process,
                                   shown_name(listed.process.name, listed.process.process),
                                   printable(listed.process.problem));
        }
    }
    return (table.rows.empty() ? "" : table_text(table, width)) + refused;
}

std::string list_json(const ListedProcess& listed) {
    nlohmann::ordered_json json = {{"process", listed.process.process},
                                   {"name", listed.process.name},
                                   {"readable", listed.snapshot.has_value()},
                                   {"problem", listed.process.problem}};
    if (listed.snapshot) {
        const Totals totals = add_up(*listed.snapshot);
        json["pools"] = listed.snapshot->pools.size();
        json["arenas"] = listed.snapshot->arenas.size();
        json["scratches"] = listed.snapshot->scratches.size();
        json["planned"] = listed.snapshot->planned.size();
        json["devices"] = listed.snapshot->devices.size();
        for (const TotalMetric& metric : total_metrics) {
            if (metric.is_memory) json[metric.name] = totals.*metric.value;
        }
    }
    // A name that is not UTF-8 must not end the command.
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void add_ls(CLI::App& app, Settings& settings) {
    CLI::App* const command = add_subcommand(
        app, settings,
        {"ls", "List the processes that have pools, and their memory", footer, details},
        [&settings] { return list(settings); });
    add_output_options(*command, settings);
}

}  // namespace tensorpool::command
