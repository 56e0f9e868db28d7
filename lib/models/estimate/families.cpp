#include "models/estimate/families.hpp"

#include <tensorpool/model_hyperparameters.hpp>

namespace tensorpool::files {
namespace {

// Mistral's models have the architecture llama, except for later ones. Files of phi3, llama and
// qwen2 may have a window, but llama.cpp keeps their whole context (for phi3 since its pull request
// 13676).
constexpr Family families[] = {
    {"llama", 0, 0},     {"mistral", 0, 0}, {"mistral3", 0, 0}, {"qwen2", 0, 0},
    {"qwen2moe", 0, 0},  {"qwen3", 0, 0},   {"qwen3moe", 0, 0}, {"gemma", 0, 0},
    {"gemma2", 2, 4096}, {"gemma3", 6, 0},  {"phi2", 0, 0},     {"phi3", 0, 0},
    {"gpt2", 0, 0},
};

}  // namespace

const Family* find_family(const std::string& architecture) {
    for (const Family& family : families) {
        if (architecture == family.architecture) return &family;
    }
    return nullptr;
}

static std::string list_families() {
    std::string names;
    for (const Family& family : families) {
        names += names.empty() ? "" : ", ";
        names += family.architecture;
    }
    return names;
}

}  // namespace tensorpool::files

std::string tensorpool::known_architectures() {
    return files::list_families();
}
