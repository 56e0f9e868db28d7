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
#include "model/estimate/config_figures.hpp"
#include "model/estimate/estimation.hpp"
#include "model/estimate/gguf_figures.hpp"
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

/// This machine's and its container's memory, and that of its first CUDA device, where there is
/// one: by the driver, which may take a while to start.
MemoryThere look_at_memory() {
    return {get_available_memory(), get_total_memory(), first_device()};
}

ModelFile open_model(const std::string& path) try {
    return ModelFile::open(path);
} catch (const ModelFileError& error) {
    throw CommandError(unusable, printable(error.what()));
} catch (const std::system_error& error) {
    throw CommandError(unusable, printable(error.what()));
}

/// What is known of a model, and from where.
struct Known {
    std::optional<Hyperparameters> model;
    std::string source;
    std::string why_unknown;
};

template <class Figures>
Known known_from(const Figures& figures, const std::string& source) {
    const std::string& name = figures.architecture();
    const Family* const family = find_family(name);
    if (family != nullptr) return {read_hyperparameters(figures, *family, name), source, ""};
    const std::string found =
        name.empty() ? "It names no architecture" : fmt::format("Its architecture is {}", name);
    return {std::nullopt, "", fmt::format("{}; known are {}.", found, family_names())};
}

Known what_is_known(const ModelFile& file) {
    if (file.format() == ModelFormat::gguf) return known_from(GgufFigures(file), "");
    const std::filesystem::path path(file.name());
    const std::string config = path.parent_path() / "config.json";
    // Not a pipe, which would make us wait for who writes it.
    std::error_code none;
    if (file.format() == ModelFormat::safetensors && std::filesystem::is_regular_file(config, none))
        return known_from(ConfigFigures(config), config);
    return {std::nullopt, "",
            fmt::format(
                "A file of {} does not tell how the model is built{}.", to_string(file.format()),
                file.format() == ModelFormat::safetensors ? ", and no config.json lies beside it"
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

/// Where layers are to be on a device, it has what was told, or what its driver says.
MemoryThere memory_for(const Asked& asked) {
    MemoryThere memory = look_at_memory();
    if (asked.device_bytes) {
        memory.device = {"a device", *asked.device_bytes, *asked.device_bytes};
    } else if (asked.layers_on_device.value_or(0) > 0 && !memory.device) {
        throw CommandError(wrong_usage,
                           "there is no CUDA device here; say with --device-memory how much memory "
                           "the device has that is to take layers");
    }
    return memory;
}

Estimation estimate_of(const ModelFile& file, const Contents& contents, const Asked& asked) {
    const std::vector<std::string> files = files_of_model(file.name());
    Weights weights = weights_of(file, contents);
    for (const std::string& part : files) {
        if (part != file.name()) add(weights, weights_in(part));
    }
    // The first tells how the model is built.
    Known known = files.front() == file.name() ? what_is_known(file)
                                               : what_is_known(open_model(files.front()));
    Estimation estimation =
        make_estimation(std::move(known.model), std::move(weights), asked, memory_for(asked));
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
    if (options.estimate) report.estimation = estimate_of(file, contents, options.asked);
    std::string text =
        settings.json ? json_report(report) : text_report(report, sizes_of(settings));
    if (!settings.json) text.pop_back();
    print_line(text);
    return report.estimation && !report.estimation->fits ? finding : success;
}

}  // namespace tensorpool::command::model
