#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/printable.hpp"
#include "common/table.hpp"
#include "explain/explanation.hpp"

namespace tensorpool::command::explain {
namespace {

/// Wide enough for every row.
constexpr std::size_t width = 400;

std::vector<Cell> cells_of(const Row& row, const Explanation& explanation, Sizes sizes) {
    const auto all = static_cast<double>(explanation.resident_bytes);
    const bool comes_back = row.back_bytes != 0;
    return {{format_size(row.bytes, sizes)},
            {format_part(static_cast<double>(row.bytes) / all)},
            {comes_back ? format_size(row.back_bytes, sizes) : ""},
            {printable(row.what)},
            {comes_back ? printable(row.how) : ""}};
}

}  // namespace

std::string to_text(const Explanation& explanation, Sizes sizes) {
    std::string text =
        fmt::format("process {} ({}): {} resident\n", explanation.process,
                    printable(explanation.name), format_size(explanation.resident_bytes, sizes));
    Table table{
        .columns = {
            {"bytes"}, {"part"}, {"can shrink"}, {"what", Side::left}, {"how", Side::left}}};
    for (const Row& row : explanation.rows) {
        table.rows.push_back(cells_of(row, explanation, sizes));
    }
    for (const std::string& line : lay_out(table, width)) text += line + '\n';
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
                                {"how", row.how}});
    }
    return json.dump();
}

}  // namespace tensorpool::command::explain
