#pragma once

/// @file
/// The hyperparameters of a transformer that determine its memory besides the weights.

#include <cstdint>
#include <string>
#include <vector>

namespace tensorpool::command::model {

struct AttentionLayer {
    std::uint64_t heads = 0;
    std::uint64_t key_value_heads = 0;  ///< fewer than heads: grouped-query attention
    std::uint64_t window = 0;           ///< positions of its attention window; 0: all
};

struct Hyperparameters {
    std::string architecture;   ///< the name in general.architecture
    std::uint64_t context = 0;  ///< the context that it was trained for; 0: unknown
    std::uint64_t embedding = 0;
    std::uint64_t vocabulary = 0;
    std::uint64_t feed_forward = 0;  ///< the sum over all experts that process a token
    std::uint64_t experts_used = 0;  ///< experts that process a token; 0: no mixture of experts
    std::uint64_t key_length = 0;    ///< of one head
    std::uint64_t value_length = 0;
    std::vector<AttentionLayer> layers;
    /// A window in the file that llama.cpp does not use, because it keeps the whole context. It is
    /// not in `layers`. 0: none.
    std::uint64_t unused_window = 0;
};

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
/// Returns all architectures: "llama, qwen2, …".
std::string family_names();

/// Returns whether a layer, counted from 0, has the window. With a period of 6, the sixth, twelfth
/// and so on have none.
constexpr bool has_window(std::uint64_t layer, std::uint64_t period) noexcept {
    return period > 0 && layer % period < period - 1;
}

}  // namespace tensorpool::command::model
