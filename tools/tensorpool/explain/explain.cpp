#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "explain/explanation.hpp"

namespace tensorpool::command::explain {
namespace {

std::vector<Cell> cells_of(const Row& row, const Explanation& explanation, Sizes sizes) {
    const auto all = static_cast<double>(explanation.resident_bytes);
    const bool comes_back = row.back_bytes != 0;
    return {{format_size(row.bytes, sizes)},
            {format_part(static_cast<double>(row.bytes) / all)},
            {comes_back ? format_size(row.back_bytes, sizes) : ""},
            {printable(row.what)},
            {printable(row.why)},
            {comes_back ? printable(row.how) : ""}};
}

std::string text_of(const std::vector<Allocator>& allocators, const char* title,
                    const Explanation& explanation, Sizes sizes) {
    Table table{.columns = {{"bytes"}, {"part"}, {title, Side::left}}};
    for (const Allocator& one : allocators) {
        constexpr std::size_t max_columns = 200;
        const std::string name = printable(one.name);
        table.rows.push_back({size_cell(one.bytes, sizes),
                              part_cell(one.bytes, explanation.resident_bytes),
                              {fit(name, std::min(columns_of(name), max_columns))}});
    }
    return table_text(table);
}

/// Returns the tables that divide the blocks in use once more.
std::string text_of(const InUse& in_use, const Explanation& explanation, Sizes sizes) {
    const std::string headline = fmt::format(
        "\nblocks in use ({}), by the call that allocated them", format_size(in_use.bytes, sizes));
    std::string text;
    if (in_use.sites.empty()) {
        text = fmt::format("{}: {}\n", headline, in_use.note);
    } else {
        text = fmt::format("{}, estimated from one sample per {}\n", headline,
                           format_size(in_use.interval, sizes)) +
               text_of(in_use.sites, "allocated at", explanation, sizes);
    }
    if (in_use.scopes.empty()) return text;
    return text + "\nby scope: what ended scopes allocated and did not free themselves\n" +
           text_of(in_use.scopes, "scope", explanation, sizes);
}

nlohmann::ordered_json json_of(const std::vector<Allocator>& allocators) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Allocator& one : allocators) {
        json.push_back({{"name", printable(one.name)}, {"bytes", one.bytes}});
    }
    return json;
}

}  // namespace

std::string to_text(const Explanation& explanation, Sizes sizes) {
    std::string text =
        fmt::format("process {} ({}): {} resident\n", explanation.process,
                    printable(explanation.name), format_size(explanation.resident_bytes, sizes));
    Table table{.columns = {{"bytes"},
                            {"part"},
                            {"can shrink"},
                            {"what", Side::left},
                            {"kept by", Side::left},
                            {"how to shrink it", Side::left}}};
    for (const Row& row : explanation.rows) {
        table.rows.push_back(cells_of(row, explanation, sizes));
    }
    text += table_text(table);
    if (explanation.in_use.bytes != 0) text += text_of(explanation.in_use, explanation, sizes);
    text.pop_back();
    return text;
}

std::string to_json(const Explanation& explanation) {
    nlohmann::ordered_json json = {{"process", explanation.process},
                                   {"process_name", printable(explanation.name)},
                                   {"resident_bytes", explanation.resident_bytes}};
    json["rows"] = nlohmann::ordered_json::array();
    for (const Row& row : explanation.rows) {
        json["rows"].push_back({{"what", printable(row.what)},
                                {"bytes", row.bytes},
                                {"back_bytes", row.back_bytes},
                                {"why", row.why},
                                {"how", row.how}});
    }
    const InUse& in_use = explanation.in_use;
    json["in_use"] = {{"bytes", in_use.bytes},
                      {"sample_interval", in_use.interval},
                      {"note", in_use.note},
                      {"sites", json_of(in_use.sites)},
                      {"scopes", json_of(in_use.scopes)}};
    return json.dump();
}

}  // namespace tensorpool::command::explain

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
