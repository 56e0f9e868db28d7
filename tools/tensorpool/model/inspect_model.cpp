#include "model/inspect_model.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/system_memory.hpp>

#include "common/output.hpp"
#include "common/printable.hpp"
#include "model/contents.hpp"
#include "model/estimate/config_hyperparameters.hpp"
#include "model/estimate/estimation.hpp"
#include "model/estimate/gguf_hyperparameters.hpp"
#include "model/model_report.hpp"
#include "model/saturating.hpp"
#include "model/split_model.hpp"
#include "options.hpp"
#include "trace/input.hpp"

namespace tensorpool::command::model {
namespace {

std::optional<DeviceMemory> first_device() {
    CudaBackend cuda;
    DeviceMemoryInfo info;
    if (cuda.device_count() == 0 || cuda.memory_info(0, info) != DeviceStatus::ok)
        return std::nullopt;
    return DeviceMemory{cuda.device_name(0), info.free_bytes, info.total_bytes};
}

/// Returns the memory of this machine and its container, and that of its first CUDA device if there
/// is one. The driver of the device may take a while to start.
AvailableMemory query_memory() {
    return {get_available_memory(), get_total_memory(), first_device()};
}

ModelFile open_model(const std::string& path) try {
    return ModelFile::open(path);
} catch (const ModelFileError& error) {
    throw CommandError(unusable, printable(error.what()));
} catch (const std::system_error& error) {
    throw CommandError(unusable, printable(error.what()));
}

/// The hyperparameters of a model with their source, or the reason why they are unknown.
struct Known {
    std::optional<Hyperparameters> model;
    std::string source;
    std::string why_unknown;
};

template <class Source>
Known known_from(const Source& parameters, const std::string& source) {
    const std::string& name = parameters.architecture();
    const Family* const family = find_family(name);
    if (family != nullptr) return {read_hyperparameters(parameters, *family, name), source, ""};
    const std::string found =
        name.empty() ? "It names no architecture" : fmt::format("Its architecture is {}", name);
    return {std::nullopt, "", fmt::format("{}; known are {}.", found, family_names())};
}

Known known_parameters(const ModelFile& file) {
    if (file.format() == ModelFormat::gguf) return known_from(GgufHyperparameters(file), "");
    const std::filesystem::path path(file.name());
    const std::string config = path.parent_path() / "config.json";
    // Only a regular file: opening a pipe would wait for a writer.
    std::error_code none;
    if (file.format() == ModelFormat::safetensors && std::filesystem::is_regular_file(config, none))
        return known_from(ConfigHyperparameters(config), config);
    return {std::nullopt, "",
            fmt::format("A file of format {} has no hyperparameters{}.", to_string(file.format()),
                        file.format() == ModelFormat::safetensors
                            ? ", and there is no config.json beside it"
                            : "")};
}

void add(Weights& all, const Weights& part) {
    all.embeddings = sum(all.embeddings, part.embeddings);
    all.output = sum(all.output, part.output);
    all.other = sum(all.other, part.other);
    all.tied = all.tied && part.tied;
    if (all.layers.size() < part.layers.size()) all.layers.resize(part.layers.size());
    for (std::size_t i = 0; i < part.layers.size(); ++i)
        all.layers[i] = sum(all.layers[i], part.layers[i]);
}

Weights weights_in(const std::string& path) {
    const ModelFile file = open_model(path);
    return weights_of(file, sum_up(file, 0));
}

/// Returns the memory for the estimate. If layers are to be on a device, its memory is the given
/// one, or the one that its driver reports.
AvailableMemory memory_for(const Request& request) {
    AvailableMemory memory = query_memory();
    if (request.device_bytes) {
        memory.device = {"a device", *request.device_bytes, *request.device_bytes};
    } else if (request.layers_on_device.value_or(0) > 0 && !memory.device) {
        throw CommandError(wrong_usage,
                           "there is no CUDA device on this machine; give the memory of the device "
                           "for the layers with --device-memory");
    }
    return memory;
}

Estimation estimate_of(const ModelFile& file, const Contents& contents, const Request& request) {
    const std::vector<std::string> files = files_of_model(file.name());
    Weights weights = weights_of(file, contents);
    for (const std::string& part : files) {
        if (part != file.name()) add(weights, weights_in(part));
    }
    // The first file has the hyperparameters.
    Known known = files.front() == file.name() ? known_parameters(file)
                                               : known_parameters(open_model(files.front()));
    Estimation estimation =
        make_estimation(std::move(known.model), std::move(weights), request, memory_for(request));
    estimation.source = std::move(known.source);
    estimation.why_unknown = std::move(known.why_unknown);
    return estimation;
}

}  // namespace

bool is_model(const std::string& path) try {
    std::array<std::byte, 16> first{};
    trace::Input input(path);
    return guess_model_format(std::span(first).first(input.read(0, first))) != ModelGuess::none;
} catch (const CommandError&) {
    return false;
}

int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top) {
    const ModelFile file = open_model(path);
    const Contents contents = sum_up(file, top);
    Report report{file, contents, top, std::nullopt};
    if (options.estimate) report.estimation = estimate_of(file, contents, options.request);
    std::string text =
        settings.json ? json_report(report) : text_report(report, sizes_of(settings));
    if (!settings.json) text.pop_back();
    print_line(text);
    return report.estimation && !report.estimation->fits ? finding : success;
}

}  // namespace tensorpool::command::model
