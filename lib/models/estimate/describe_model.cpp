#include <tensorpool/model_hyperparameters.hpp>

#include <filesystem>
#include <system_error>

#include <tensorpool/detail/saturating.hpp>
#include <tensorpool/model_file.hpp>

#include "models/estimate/config/config.hpp"
#include "models/estimate/gguf_hyperparameters.hpp"
#include "models/estimate/hyperparameter_source.hpp"

namespace tensorpool {
namespace {

using detail::sum;

void read_from(const files::HyperparameterSource& source, ModelDescription& to) {
    const std::string& name = source.architecture();
    const files::Family* const family = files::find_family(name);
    if (family != nullptr) {
        to.hyperparameters = files::read_hyperparameters(source, *family);
        return;
    }
    const std::string found =
        name.empty() ? "It names no architecture" : "Its architecture is " + name;
    to.why_unknown = found + "; known are " + known_architectures() + ".";
}

/// Returns the path of the configuration beside a model; "" if there is none.
std::string config_beside(const ModelFile& file) {
    if (file.mapping() == nullptr) return "";
    const std::filesystem::path folder = std::filesystem::path(file.name()).parent_path();
    const std::string config = (folder / "config.json").string();
    // Only a regular file: opening a pipe would wait for a writer.
    std::error_code none;
    return std::filesystem::is_regular_file(config, none) ? config : "";
}

void read_hyperparameters_of(const ModelFile& file, ModelDescription& to) {
    if (file.format() == ModelFormat::gguf) {
        return read_from(files::GgufHyperparameters(file), to);
    }
    const bool may_have_config = file.format() == ModelFormat::safetensors;
    const std::string config = may_have_config ? config_beside(file) : "";
    if (!config.empty()) {
        read_from(*files::read_config_file(config), to);
        if (to.hyperparameters) to.source = config;
        return;
    }
    to.why_unknown = std::string("A file of format ") + to_string(file.format()) +
                     " has no hyperparameters" +
                     (may_have_config ? ", and there is no config.json beside it." : ".");
}

void add(ModelWeights& all, const ModelWeights& part) {
    all.embeddings = sum(all.embeddings, part.embeddings);
    all.output = sum(all.output, part.output);
    all.other = sum(all.other, part.other);
    all.tied = all.tied && part.tied;
    if (all.layers.size() < part.layers.size()) all.layers.resize(part.layers.size());
    for (std::size_t i = 0; i < part.layers.size(); ++i) {
        all.layers[i] = sum(all.layers[i], part.layers[i]);
    }
}

}  // namespace

ModelDescription describe_model(const ModelFile& file) {
    ModelDescription description;
    description.weights = weights_of(file);
    const std::vector<std::string> paths =
        file.mapping() != nullptr ? files_of_model(file.name()) : std::vector{file.name()};
    // The first part has the hyperparameters.
    if (paths.front() == file.name()) read_hyperparameters_of(file, description);
    for (const std::string& path : paths) {
        if (path == file.name()) continue;
        const ModelFile part = ModelFile::open(path);
        add(description.weights, weights_of(part));
        if (path == paths.front()) read_hyperparameters_of(part, description);
    }
    return description;
}

}  // namespace tensorpool
