#pragma once

#include <tensorpool/model_file.hpp>

#include "models/estimate/hyperparameter_source.hpp"

namespace tensorpool::files {

/// Reads hyperparameters from the metadata of a GGUF file, by the keys of ggml/docs/gguf.md. The
/// file must outlive it.
class GgufHyperparameters final : public HyperparameterSource {
public:
    explicit GgufHyperparameters(const ModelFile& file);
    const std::string& architecture() const noexcept override { return architecture_; }
    std::string name_of(Hyperparameter parameter) const override;
    std::optional<std::vector<std::int64_t>> find(Hyperparameter parameter) const override;
    const std::string& file() const override { return file_.name(); }

private:
    std::optional<std::vector<std::int64_t>> vocabulary() const;
    const ModelFile& file_;
    std::string architecture_;
};

}  // namespace tensorpool::files
