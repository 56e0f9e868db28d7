#include <fmt/format.h>

#include <nlohmann/json.hpp>

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
