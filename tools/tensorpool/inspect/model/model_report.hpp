#pragma once

/// @file
/// `tensorpool inspect MODEL`: what the file contains, and whether the model fits into memory.

#include <tensorpool/model_estimate.hpp>
#include <tensorpool/model_file.hpp>

#include "common/options.hpp"
#include "common/table.hpp"

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

std::string text_report(const Report& report, Sizes sizes);
/// Returns one line of JSON with all tensors and sizes in bytes, without a newline.
std::string json_report(const Report& report);

std::string estimation_text(const Estimation& estimation, Sizes sizes);
std::string estimation_json(const Estimation& estimation);

/// Returns a value for people, on one line. Long strings are cut. Arrays are shown by their size
/// ("array of 151,936 strings"), except for short arrays of whole numbers. Control characters of
/// the file are not yet escaped.
std::string text_of(const MetadataValue& value);

/// Returns a line such as "format                 GGUF  version 3".
std::string fact_line(const std::string& name, const std::string& value,
                      const std::string& note = "");
/// Returns the text wrapped to 79 columns and indented, with control characters escaped.
std::string paragraph(const std::string& text, const char* indent = "");

struct ModelOptions {
    bool estimate = false;
    Request request;
};

/// Adds --estimate and its options to the command. Requires: `options` outlives the command.
void add_options(CLI::App& command, ModelOptions& options);
/// Returns the text about models for the manual.
std::string manual_text();

/// Returns whether the file is a model, by its first bytes. Returns false if it cannot be opened.
bool is_model(const std::string& path);

/// Prints the report. Returns `success`, or `finding` if an estimate does not fit. Throws
/// CommandError: `unusable` for a file that is damaged or has impossible values.
int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top);

}  // namespace tensorpool::command::model
