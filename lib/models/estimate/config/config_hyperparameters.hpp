#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>

#include "models/estimate/hyperparameter_source.hpp"

namespace tensorpool::files {

/// Reads hyperparameters from the config.json beside a model of Hugging Face, by the names of
/// PretrainedConfig. Multimodal models have those of the text model in "text_config".
class ConfigHyperparameters final : public HyperparameterSource {
public:
    /// Throws HyperparameterError if the file cannot be read or is not a JSON object.
    explicit ConfigHyperparameters(std::string path);
    ~ConfigHyperparameters() override;
    /// Returns model_type, converted to the names of general.architecture: "phi" becomes "phi2",
    /// "mixtral" becomes "llama".
    const std::string& architecture() const noexcept override { return architecture_; }
    std::string name_of(Hyperparameter parameter) const override;
    std::optional<std::vector<std::int64_t>> find(Hyperparameter parameter) const override;
    const std::string& file() const override { return path_; }

private:
    std::optional<std::vector<std::int64_t>> windows(const nlohmann::json& types) const;
    std::optional<std::vector<std::int64_t>> usual(Hyperparameter parameter) const;

    std::string path_;
    std::unique_ptr<nlohmann::json> config_;
    std::string architecture_;
};

}  // namespace tensorpool::files
