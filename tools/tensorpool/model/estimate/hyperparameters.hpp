#pragma once

/// @file
/// What is needed to know of a transformer to tell how much memory it wants beside its weights.

#include <cstdint>
#include <string>
#include <vector>

namespace tensorpool::command::model {

struct AttentionLayer {
    std::uint64_t heads = 0;
    std::uint64_t key_value_heads = 0;  ///< fewer than heads: grouped-query attention
    std::uint64_t window = 0;           ///< positions that it looks back; 0: all
};

struct Hyperparameters {
    std::string architecture;   ///< as general.architecture names it
    std::uint64_t context = 0;  ///< that it was trained for; 0: not told
    std::uint64_t embedding = 0;
    std::uint64_t vocabulary = 0;
    std::uint64_t feed_forward = 0;  ///< of all experts that work on a token, together
    std::uint64_t experts_used = 0;  ///< 0: no mixture of experts
    std::uint64_t key_length = 0;    ///< of one head
    std::uint64_t value_length = 0;
    std::vector<AttentionLayer> layers;
    /// A window that the file tells and llama.cpp does not use, keeping the whole context: not in
    /// `layers`. 0: none.
    std::uint64_t unused_window = 0;
};

/// Which layers of a family have a window, as llama.cpp has it (llama_hparams::set_swa_pattern and
/// load_hparams of each architecture; src/llama-model.cpp, since 2026 src/models/).
struct Family {
    const char* architecture;
    std::uint64_t
        period;  ///< every layer of this number has none; 0: all look at the whole context
    std::uint64_t window;  ///< where the file tells none
};

/// nullptr for an architecture that is not known.
const Family* find_family(const std::string& architecture);
/// "llama, qwen2, …".
std::string family_names();

/// Whether layer `layer` has the window: with a period of 6 the sixth, twelfth and so on have none.
constexpr bool has_window(std::uint64_t layer, std::uint64_t period) noexcept {
    return period > 0 && layer % period < period - 1;
}

}  // namespace tensorpool::command::model
