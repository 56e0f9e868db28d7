#pragma once

/// @file
/// `tensorpool inspect MODEL`: what the file contains, and whether the model fits into memory.

#include <tensorpool/detail/saturating.hpp>
#include <tensorpool/model_estimate.hpp>
#include <tensorpool/model_file.hpp>

#include "common/cells.hpp"
#include "common/options.hpp"

namespace tensorpool::command::model {

struct Amount {
    std::uint64_t tensors = 0;
    std::uint64_t parameters = 0;  ///< elements
    std::uint64_t bytes = 0;
    void add(const ModelTensor& tensor) noexcept;
    friend bool operator==(const Amount&, const Amount&) = default;
};

/// Embeddings, layers by number, output, other.
struct InOrderOfUse {
    bool operator()(const TensorLocation& one, const TensorLocation& other) const;
};

/// The summary of a file. Holds views into the file, which must outlive it.
struct Contents {
    Amount all;
    std::vector<std::pair<std::string_view, Amount>> by_type;  ///< the largest first
    std::map<TensorLocation, Amount, InOrderOfUse> by_location;
    std::vector<const ModelTensor*> largest;
};

/// Summarizes a file, with its `top` largest tensors.
Contents sum_up(const ModelFile& file, std::size_t top);

/// Layers of equal size, shown in one row.
struct LayerGroup {
    std::string name;          ///< "blk.0-3, 6, 9-31" or "embeddings"; not yet escaped
    std::uint64_t layers = 0;  ///< 0: the group is not of layers
    Amount each;               ///< of one layer
    Amount all;
};

/// Groups the layers of one stem that have the same numbers of tensors, parameters and bytes. A
/// group is listed at the position of its first layer.
std::vector<LayerGroup> group_layers(const Contents& contents);

/// The memory of a device, as reported by its driver or given by the user.
struct DeviceMemory {
    std::string name;
    std::uint64_t available = 0;
    std::uint64_t total = 0;
};

struct AvailableMemory {
    std::uint64_t available = 0;  ///< available to this process on the machine and its container
    std::uint64_t total = 0;
    std::optional<DeviceMemory> device;
    std::string why_no_device = {};  ///< the reason, without a period; "": nothing was asked
};

/// The user's options. Values that are not set follow from the model and the machine.
struct Request {
    std::optional<std::uint64_t> context;
    std::optional<std::uint64_t> layers_on_device;
    std::optional<std::uint64_t> device_bytes;
    std::string cache = "f16";
    std::uint64_t batch = 512;
    std::uint64_t sequences = 1;
    bool flash_attention = true;
};

struct Estimation {
    std::optional<ModelHyperparameters> model;  ///< nullopt: only the weights are known
    std::string why_unknown;                    ///< the reason for that, as a sentence
    std::string source;                         ///< the file with the hyperparameters
    ModelWeights weights;
    InferencePlan plan;
    MemoryEstimate need;
    AvailableMemory memory;
    bool fits = false;
    std::vector<PlanSuggestion> suggestions;  ///< if it does not fit
    std::uint64_t largest_context = 0;        ///< the largest context that fits; 0: none
    std::uint64_t fitting_layers = 0;         ///< layers that fit on a device not requested
    std::optional<MemoryEstimate>
        with_unused_window;  ///< with a window that llama.cpp does not use
};

/// Makes the estimate. Throws CommandError (wrong_usage) for a type of cache that the model cannot
/// have.
Estimation make_estimation(std::optional<ModelHyperparameters> model, ModelWeights weights,
                           const Request& request, AvailableMemory memory);

/// Returns the options that change the requested plan to the other one.
std::string options_between(const InferencePlan& request, const InferencePlan& plan);

struct Report {
    const ModelFile& file;
    const Contents& contents;
    std::size_t top = 10;                  ///< rows of long tables
    std::optional<Estimation> estimation;  ///< with --estimate
};
/// Returns one line of JSON with all tensors and sizes in bytes, without a newline.
std::string json_report(const Report& report);
std::string estimation_json(const Estimation& estimation);

struct ModelOptions {
    bool estimate = false;
    Request request;
};

/// Adds --estimate and its options to the command. Requires: `options` outlives the command.
void add_options(CLI::App& command, ModelOptions& options);
std::string manual_text();

/// Returns whether the file is a model, by its first bytes. Returns false if it cannot be opened.
bool is_model(const std::string& path);

/// Prints the report. Returns `success`, or `finding` if an estimate does not fit. Throws
/// CommandError: `unusable` for a file that is damaged or has impossible values.
int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top);

inline constexpr std::size_t max_characters = 60;
inline constexpr std::size_t max_elements = 8;

inline std::string text_of_string(std::string_view text) {
    const std::size_t line = std::min(text.find('\n'), text.size());
    if (line == text.size() && text.size() <= max_characters) return std::string(text);
    // Does not cut within a UTF-8 character: bytes after its first begin with the bits 10.
    std::size_t end = std::min(line, max_characters);
    while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;
    return fmt::format("{}... ({} bytes)", text.substr(0, end), with_commas(text.size()));
}

inline std::string text_of_array(const MetadataArray& array) {
    if (array.count <= max_elements) {
        const auto values = whole_numbers(array, max_elements);
        if (values && values->size() == array.count)
            return fmt::format("[{}]", fmt::join(*values, ", "));
    }
    return fmt::format("array of {}", counted(array.count, array.type));
}

using detail::sum;

inline std::string size(std::uint64_t bytes, Sizes sizes) {
    return bytes == detail::max_number ? "over 16 EiB" : format_size(bytes, sizes);
}

inline Cell cell(std::uint64_t bytes, Sizes sizes) {
    return {size(bytes, sizes), static_cast<double>(bytes)};
}

/// Returns a title with an empty line before and after it, then the table.
inline std::string titled_table(const std::string& title, const Table& table) {
    return '\n' + title + "\n\n" + table_text(table);
}

/// Returns "32 heads of 128, 8 for keys and values". If layers differ, describes the first one.
inline std::string heads_text(const ModelHyperparameters& model) {
    const AttentionLayer& layer = model.layers.front();
    std::string heads =
        fmt::format("{} of {}", counted(layer.heads, "head"), with_commas(model.key_length));
    if (layer.heads == layer.key_value_heads) return heads;
    return fmt::format("{}, {} for keys and values", heads, with_commas(layer.key_value_heads));
}

/// Returns a line such as "format                 GGUF  version 3".
inline std::string fact_line(const std::string& name, const std::string& parameter,
                             const std::string& note = "") {
    std::string line = fit(name, 15) + ' ' + fit(printable(parameter), 14, Side::right);
    if (!note.empty()) line += "  " + printable(note);
    return line + '\n';
}

/// Returns a line about the window; "" if no layer has one.
inline std::string window_fact(const ModelHyperparameters& model) {
    const auto has_one = [](const AttentionLayer& layer) { return layer.window > 0; };
    const auto first = std::ranges::find_if(model.layers, has_one);
    if (first == model.layers.end()) return "";
    const auto count = static_cast<std::uint64_t>(std::ranges::count_if(model.layers, has_one));
    return fact_line("window", with_commas(first->window),
                     "positions in " + counted(count, "layer"));
}

inline std::string model_facts(const Estimation& estimation) {
    const ModelHyperparameters& model = *estimation.model;
    std::string text = fact_line("layers", with_commas(model.layers.size()), heads_text(model));
    text += window_fact(model);
    text += fact_line("vocabulary", with_commas(model.vocabulary));
    if (model.context > 0)
        text += fact_line("trained for", with_commas(model.context), "positions");
    if (!estimation.source.empty()) text += fact_line("source", "config.json", estimation.source);
    return text;
}

inline std::string title(const InferencePlan& plan) {
    return fmt::format(
        "Estimate for a context of {}, batches of {}, {}, a cache of {}, {} flash attention:",
        with_commas(plan.context), with_commas(plan.batch), counted(plan.sequences, "sequence"),
        plan.cache.name, plan.flash_attention ? "with" : "without");
}

inline void add_row(Table& table, const char* name, std::uint64_t MemoryNeed::*parameter,
                    const Estimation& estimation, Sizes sizes) {
    std::vector<Cell> row = {text_cell(name), cell(estimation.need.host.*parameter, sizes)};
    if (table.columns.size() > 2) row.push_back(cell(estimation.need.device.*parameter, sizes));
    table.rows.push_back(std::move(row));
}

inline std::string need_table(const Estimation& estimation, Sizes sizes) {
    const bool on_device = estimation.plan.layers_on_device > 0;
    Table table;
    table.columns = {text_column("", 16), size_column(on_device ? "HOST" : "BYTES")};
    if (on_device) table.columns.push_back(size_column("DEVICE"));
    add_row(table, "weights", &MemoryNeed::weights, estimation, sizes);
    add_row(table, "key-value cache", &MemoryNeed::cache, estimation, sizes);
    add_row(table, "computing", &MemoryNeed::compute, estimation, sizes);
    table.rows.push_back({text_cell("needed"), cell(estimation.need.host.total(), sizes)});
    table.rows.push_back({text_cell("available"), cell(estimation.memory.available, sizes)});
    table.rows.push_back({text_cell("total memory"), cell(estimation.memory.total, sizes)});
    if (on_device) {
        const auto& device = estimation.memory.device;
        const std::uint64_t parameters[] = {estimation.need.device.total(), device->available,
                                            device->total};
        for (std::size_t i = 0; i < 3; ++i) table.rows[3 + i].push_back(cell(parameters[i], sizes));
    }
    return table_text(table);
}

inline std::string layers_on_device_text(const Estimation& estimation) {
    const std::uint64_t all = estimation.model->layers.size() + 1;
    const std::uint64_t there = estimation.plan.layers_on_device;
    if (there == 0) return "";
    return fmt::format("{} of {} layers (the output counts as one) on {}.\n", with_commas(there),
                       with_commas(all), printable(estimation.memory.device->name));
}

/// Returns the missing memory: "1.20 GiB more than this machine has available".
inline std::string shortfall(const Estimation& estimation, Sizes sizes) {
    std::string text;
    const auto add = [&](std::uint64_t need, std::uint64_t there, const char* where) {
        if (need <= there) return;
        text += text.empty() ? "" : ", and ";
        text += fmt::format("{} more than {} has available", size(need - there, sizes), where);
    };
    add(estimation.need.host.total(), estimation.memory.available, "this machine");
    if (estimation.plan.layers_on_device > 0)
        add(estimation.need.device.total(), estimation.memory.device->available, "the device");
    return text;
}

inline std::string suggestions_table(const Estimation& estimation, Sizes sizes) {
    const bool on_device = estimation.plan.layers_on_device > 0;
    Table table;
    table.columns = {text_column("WITH", 30), size_column("CACHE"), size_column("COMPUTING"),
                     size_column(on_device ? "HOST" : "TOGETHER")};
    if (on_device) table.columns.push_back(size_column("DEVICE"));
    for (const PlanSuggestion& suggestion : estimation.suggestions) {
        const MemoryNeed& host = suggestion.estimate.host;
        const MemoryNeed& device = suggestion.estimate.device;
        table.rows.push_back({text_cell(options_between(estimation.plan, suggestion.plan)),
                              cell(sum(host.cache, device.cache), sizes),
                              cell(sum(host.compute, device.compute), sizes),
                              cell(host.total(), sizes)});
        if (on_device) table.rows.back().push_back(cell(device.total(), sizes));
    }
    return titled_table("It would fit:", table);
}

/// Returns the text wrapped to 79 columns and indented, with control characters escaped.
inline std::string paragraph(const std::string& text, const char* indent = "") {
    constexpr std::size_t columns = 79;
    std::string lines;
    for (const std::string& line : wrap(printable(text), columns)) lines += indent + line + '\n';
    return lines;
}

inline std::string no_way_text(const Estimation& estimation, Sizes sizes) {
    return paragraph(
        fmt::format("No combination of options makes it fit: the weights alone are {}. A "
                    "file with stronger quantisation, or a smaller model, may fit.",
                    size(estimation.weights.total(), sizes)));
}

inline std::string verdict(const Estimation& estimation, Sizes sizes) {
    const InferencePlan& plan = estimation.plan;
    if (!estimation.fits) {
        const std::string text =
            fmt::format("It does not fit: {}.\n", shortfall(estimation, sizes));
        if (estimation.suggestions.empty()) return text + no_way_text(estimation, sizes);
        return text + suggestions_table(estimation, sizes);
    }
    std::string text =
        fmt::format("It fits and leaves {}",
                    size(estimation.memory.available - estimation.need.host.total(), sizes));
    if (plan.layers_on_device > 0) {
        text += fmt::format(
            " here and {} on the device",
            size(estimation.memory.device->available - estimation.need.device.total(), sizes));
    }
    if (estimation.largest_context > plan.context)
        text += fmt::format("; so does a context of {}", with_commas(estimation.largest_context));
    return text + ".\n";
}

/// Returns notes on values that users may not expect.
inline std::string notes(const Estimation& estimation, Sizes sizes) {
    const ModelHyperparameters& model = *estimation.model;
    const InferencePlan& plan = estimation.plan;
    std::string text;
    if (model.context > 0 && plan.context > model.context) {
        text +=
            paragraph(fmt::format("The model was trained for {} positions, fewer than requested.",
                                  with_commas(model.context)));
    }
    if (estimation.with_unused_window) {
        const MemoryEstimate& less = *estimation.with_unused_window;
        text += paragraph(fmt::format(
            "The window of {} in the file is not counted, because llama.cpp keeps the whole "
            "context of {} models. With it in every layer, the cache would take {}.",
            with_commas(model.unused_window), model.architecture,
            size(sum(less.host.cache, less.device.cache), sizes)));
    }
    const auto& device = estimation.memory.device;
    if (device && plan.layers_on_device == 0) {
        text += paragraph(fmt::format(
            "{} has {} of {} free, enough for {} of {} layers: --layers-on-device {}.",
            device->name, size(device->available, sizes), size(device->total, sizes),
            estimation.fitting_layers, model.layers.size() + 1, estimation.fitting_layers));
    }
    if (!estimation.memory.why_no_device.empty()) {
        text += paragraph(fmt::format("The memory of cards is left out: {}.",
                                      printable(estimation.memory.why_no_device)));
    }
    return text.empty() ? text : '\n' + text;
}

inline std::string weights_only(const Estimation& estimation, Sizes sizes) {
    const std::uint64_t weights = estimation.weights.total();
    const std::uint64_t available = estimation.memory.available;
    std::string text =
        paragraph(estimation.why_unknown + " So only the weights are reported.") + '\n';
    text += fact_line("weights", size(weights, sizes));
    text += fact_line("available", size(available, sizes),
                      fmt::format("of {}", size(estimation.memory.total, sizes))) +
            '\n';
    if (estimation.fits)
        return text + fmt::format("They fit and leave {}.\n", size(available - weights, sizes));
    return text + fmt::format("They do not fit: {} more than this machine has available.\n",
                              size(weights - available, sizes));
}

// Enough for the metadata of real models; limits the output for hostile files.
inline constexpr std::size_t max_entries = 100;

inline Cell whole_cell(std::uint64_t number) {
    return {with_commas(number), static_cast<double>(number)};
}

inline std::string shape_text(const ModelTensor& tensor) {
    if (tensor.shape.empty()) return "scalar";
    return fmt::format("{}{}", fmt::join(tensor.shape, " x "),
                       tensor.column_major ? " (Fortran's order)" : "");
}

/// Returns a value for people, on one line. Long strings are cut. Arrays are shown by their size
/// ("array of 151,936 strings"), except for short arrays of whole numbers. Control characters of
/// the file are not yet escaped.
inline std::string text_of(const MetadataValue& value) {
    if (const auto* truth = std::get_if<bool>(&value)) return *truth ? "true" : "false";
    if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
    if (const auto* number = std::get_if<std::uint64_t>(&value)) return std::to_string(*number);
    if (const auto* number = std::get_if<double>(&value)) return fmt::format("{:.6g}", *number);
    if (const auto* text = std::get_if<std::string_view>(&value)) return text_of_string(*text);
    return text_of_array(std::get<MetadataArray>(value));
}

inline std::string string_of(const ModelFile& file, const char* key) {
    const MetadataValue* const value = file.find_metadata(key);
    if (value == nullptr || !std::holds_alternative<std::string_view>(*value)) return "";
    return text_of(*value);
}

inline std::string facts(const Report& report, Sizes sizes) {
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

inline std::string types(const Contents& contents, Sizes sizes) {
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

inline std::string layers(const Contents& contents, Sizes sizes, std::size_t top) {
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

inline std::string largest(const Contents& contents, Sizes sizes) {
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

inline std::string metadata(const ModelFile& file) {
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

inline std::string estimation_text(const Estimation& estimation, Sizes sizes) {
    if (!estimation.model) return weights_only(estimation, sizes);
    return model_facts(estimation) + '\n' + paragraph(title(estimation.plan)) +
           layers_on_device_text(estimation) + '\n' + need_table(estimation, sizes) + '\n' +
           verdict(estimation, sizes) + notes(estimation, sizes);
}

inline std::string text_report(const Report& report, Sizes sizes) {
    std::string text = printable(report.file.name()) + "\n\n" + facts(report, sizes);
    // With --estimate the tables are left out; they are shown without it.
    if (report.estimation) return text + '\n' + estimation_text(*report.estimation, sizes);
    text += types(report.contents, sizes);
    text += layers(report.contents, sizes, report.top);
    text += largest(report.contents, sizes);
    return text + metadata(report.file);
}

}  // namespace tensorpool::command::model
