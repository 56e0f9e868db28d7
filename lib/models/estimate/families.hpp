#pragma once

#include <cstdint>
#include <string>

namespace tensorpool::files {

/// A family of models, and which of its layers have a window, as in llama.cpp
/// (llama_hparams::set_swa_pattern and load_hparams of each architecture; src/llama-model.cpp,
/// since 2026 src/models/).
struct Family {
    const char* architecture;
    /// Every layer whose number is a multiple of this has no window; 0: no layer has a window.
    std::uint64_t period;
    std::uint64_t window;  ///< the default if the file has no window
};

/// Returns the family of an architecture, or nullptr if it is unknown.
const Family* find_family(const std::string& architecture);

/// Returns whether a layer, counted from 0, has the window. With a period of 6, the sixth, twelfth
/// and so on have none.
constexpr bool has_window(std::uint64_t layer, std::uint64_t period) noexcept {
    return period > 0 && layer % period < period - 1;
}

}  // namespace tensorpool::files
