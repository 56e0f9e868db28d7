#pragma once

#include <nlohmann/json_fwd.hpp>

#include <memory>

#include "model/estimate/figure_source.hpp"

namespace tensorpool::command::model {

/// From the config.json that lies beside a model of Hugging Face's, by the names of its
/// PretrainedConfig. Models that see keep what is for text in "text_config".
class ConfigFigures final : public FigureSource {
public:
    /// Throws CommandError (unusable) where it cannot be read or is no JSON object.
    explicit ConfigFigures(std::string path);
    ~ConfigFigures() override;
    /// model_type, in the words of general.architecture: "phi" is "phi2", "mixtral" "llama".
    const std::string& architecture() const noexcept { return architecture_; }
    std::string name_of(Figure figure) const override;
    std::optional<std::vector<std::int64_t>> find(Figure figure) const override;
    const std::string& file() const override { return path_; }

private:
    std::optional<std::vector<std::int64_t>> usual(Figure figure) const;

    std::string path_;
    std::unique_ptr<nlohmann::json> config_;
    std::string architecture_;
};

}  // namespace tensorpool::command::model
