#pragma once

#include <tensorpool/model_file.hpp>

#include "model/estimate/figure_source.hpp"

namespace tensorpool::command::model {

/// From a GGUF's metadata, by the keys of ggml/docs/gguf.md. The file must outlive it.
class GgufFigures final : public FigureSource {
public:
    explicit GgufFigures(const ModelFile& file);
    /// general.architecture; "" where it is not told.
    const std::string& architecture() const noexcept { return architecture_; }
    std::string name_of(Figure figure) const override;
    std::optional<std::vector<std::int64_t>> find(Figure figure) const override;
    const std::string& file() const override { return file_.name(); }

private:
    std::optional<std::vector<std::int64_t>> vocabulary() const;
    const ModelFile& file_;
    std::string architecture_;
};

}  // namespace tensorpool::command::model
