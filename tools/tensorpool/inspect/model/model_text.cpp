#include <fmt/format.h>

#include <algorithm>

#include "common/cells.hpp"
#include "inspect/model/estimate/layer_groups.hpp"
#include "inspect/model/metadata_text.hpp"
#include "inspect/model/model_report.hpp"
#include "inspect/model/text_parts.hpp"
#include "common/units.hpp"

namespace tensorpool::command::model {
namespace {

// Enough for the metadata of real models; limits the output for hostile files.
constexpr std::size_t max_entries = 100;

Cell whole_cell(std::uint64_t number) {
    return {with_commas(number), static_cast<double>(number)};
}

std::string shape_text(const ModelTensor& tensor) {
    if (tensor.shape.empty()) return "scalar";
    return fmt::format("{}{}", fmt::join(tensor.shape, " x "),
                       tensor.column_major ? " (Fortran's order)" : "");
}

std::string string_of(const ModelFile& file, const char* key) {
    const MetadataValue* const value = file.find_metadata(key);
    if (value == nullptr || !std::holds_alternative<std::string_view>(*value)) return "";
    return text_of(*value);
}

std::string facts(const Report& report, Sizes sizes) {
    const ModelFile& file = report.file;
    const Amount& all = report.contents.all;
    const std::string version =
        file.version() == 0 ? "" : fmt::format("version {}", file.version());
    std::string text = fact_line("format", to_string(file.format()), version);
    text += fact_line("file", format_size(file.file_bytes(), sizes));
    text += fact_line("tensors", with_commas(all.tensors), format_size(all.bytes, sizes));
    const double bits = all.parameters == 0 ? 0
                                            : 8 * static_cast<double>(all.bytes) /
                                                  static_cast<double>(all.parameters);
    text += fact_line("parameters", format_count(static_cast<double>(all.parameters)),
                      fmt::format("{:.2f} bits each", bits));
    const std::string architecture = string_of(file, "general.architecture");
    if (!architecture.empty())
        text += fact_line("architecture", architecture, string_of(file, "general.name"));
    return text;
}

std::string types(const Contents& contents, Sizes sizes) {
    Table table;
    table.columns = {text_column("TYPE", 14), count_column("TENSORS"), count_column("PARAMETERS"),
                     size_column("BYTES"), part_column("PART")};
    for (const auto& [type, amount] : contents.by_type) {
        table.rows.push_back({text_cell(type), whole_cell(amount.tensors),
                              count_cell(amount.parameters), size_cell(amount.bytes, sizes),
                              part_cell(amount.bytes, contents.all.bytes)});
    }
    return titled_table("Bytes by type", table);
}

std::string layers(const Contents& contents, Sizes sizes, std::size_t top) {
    const std::vector<LayerGroup> groups = group_layers(contents);
    if (std::ranges::none_of(groups, [](const LayerGroup& group) { return group.layers > 0; }))
        return "";
    Table table;
    table.columns = {text_column("WHERE", 14), count_column("LAYERS"), count_column("TENSORS"),
                     size_column("ONE LAYER"), size_column("BYTES"),   part_column("PART")};
    std::size_t kinds = 0;
    for (const LayerGroup& group : groups) {
        const bool is_layer = group.layers > 0;
        // Only layers are limited: there are at most three other groups.
        if (is_layer && ++kinds > top) continue;
        table.rows.push_back(
            {text_cell(group.name), is_layer ? whole_cell(group.layers) : Cell{"", 0},
             whole_cell(group.all.tensors),
             is_layer ? size_cell(group.each.bytes, sizes) : Cell{"", 0},
             size_cell(group.all.bytes, sizes), part_cell(group.all.bytes, contents.all.bytes)});
    }
    std::string text = titled_table("Bytes by layer", table);
    if (kinds > top) text += fmt::format("and {} of layer\n", counted(kinds - top, "more kind"));
    return text;
}

std::string largest(const Contents& contents, Sizes sizes) {
    if (contents.largest.empty()) return "";
    Table table;
    table.columns = {text_column("NAME", 14), text_column("TYPE", 6), text_column("SHAPE"),
                     size_column("BYTES"), part_column("PART")};
    for (const ModelTensor* const tensor : contents.largest) {
        table.rows.push_back({text_cell(tensor->name), text_cell(tensor->type.name),
                              text_cell(shape_text(*tensor)), size_cell(tensor->bytes, sizes),
                              part_cell(tensor->bytes, contents.all.bytes)});
    }
    return titled_table("Largest tensors", table);
}

std::string metadata(const ModelFile& file) {
    if (file.metadata().empty()) return "";
    Table table;
    table.columns = {text_column("KEY", 14), text_column("VALUE")};
    for (const auto& [key, value] : file.metadata()) {
        if (table.rows.size() == max_entries) break;
        table.rows.push_back({text_cell(key), text_cell(text_of(value))});
    }
    const std::size_t left_out = file.metadata().size() - table.rows.size();
    std::string text = titled_table("Metadata", table);
    if (left_out > 0)
        text += fmt::format("and {} more, which --json prints\n", with_commas(left_out));
    return text;
}

}  // namespace

std::string text_report(const Report& report, Sizes sizes) {
    std::string text = printable(report.file.name()) + "\n\n" + facts(report, sizes);
    // With --estimate the tables are left out; they are shown without it.
    if (report.estimation) return text + '\n' + estimation_text(*report.estimation, sizes);
    text += types(report.contents, sizes);
    text += layers(report.contents, sizes, report.top);
    text += largest(report.contents, sizes);
    return text + metadata(report.file);
}

}  // namespace tensorpool::command::model
