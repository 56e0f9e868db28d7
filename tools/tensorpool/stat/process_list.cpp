#include "stat/process_list.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/printable.hpp"
#include "common/table.hpp"
#include "common/totals.hpp"

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
    std::string text;
    if (!table.rows.empty()) {
        for (const std::string& line : lay_out(table, width)) text += line + '\n';
    }
    return text + refused;
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

}  // namespace tensorpool::command
