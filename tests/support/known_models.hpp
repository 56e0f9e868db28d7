#pragma once

/// @file
/// ModelHyperparameters of public models, from their configurations at Hugging Face.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <tensorpool/model_hyperparameters.hpp>

namespace tensorpool::testing {

inline ModelHyperparameters uniform(std::string architecture, std::size_t layers,
                                    std::uint64_t heads, std::uint64_t key_value_heads,
                                    std::uint64_t head_length) {
    ModelHyperparameters model;
    model.architecture = std::move(architecture);
    model.layers.assign(layers, AttentionLayer{heads, key_value_heads, 0});
    model.key_length = head_length;
    model.value_length = head_length;
    return model;
}

inline void slide(ModelHyperparameters& model, std::uint64_t period, std::uint64_t window) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        if (i % period < period - 1) model.layers[i].window = window;
    }
}

inline ModelHyperparameters llama_3_8b() {
    ModelHyperparameters model = uniform("llama", 32, 32, 8, 128);
    model.context = 8192;
    model.embedding = 4096;
    model.vocabulary = 128256;
    model.feed_forward = 14336;
    return model;
}

inline ModelHyperparameters llama_2_7b() {
    ModelHyperparameters model = uniform("llama", 32, 32, 32, 128);
    model.context = 4096;
    model.embedding = 4096;
    model.vocabulary = 32000;
    model.feed_forward = 11008;
    return model;
}

inline ModelHyperparameters qwen_3_0_6b() {
    ModelHyperparameters model = uniform("qwen3", 28, 16, 8, 128);
    model.context = 40960;
    model.embedding = 1024;
    model.vocabulary = 151936;
    model.feed_forward = 3072;
    return model;
}

inline ModelHyperparameters gemma_2_9b() {
    ModelHyperparameters model = uniform("gemma2", 42, 16, 8, 256);
    model.context = 8192;
    model.embedding = 3584;
    model.vocabulary = 256000;
    model.feed_forward = 14336;
    slide(model, 2, 4096);
    return model;
}

inline ModelHyperparameters gemma_3_4b() {
    ModelHyperparameters model = uniform("gemma3", 34, 8, 4, 256);
    model.context = 131072;
    model.embedding = 2560;
    model.vocabulary = 262208;
    model.feed_forward = 10240;
    slide(model, 6, 1024);
    return model;
}

inline ModelHyperparameters phi_3_mini() {
    ModelHyperparameters model = uniform("phi3", 32, 32, 32, 96);
    model.context = 4096;
    model.embedding = 3072;
    model.vocabulary = 32064;
    model.feed_forward = 8192;
    model.unused_window = 2047;
    return model;
}

inline ModelHyperparameters gpt_2() {
    ModelHyperparameters model = uniform("gpt2", 12, 12, 12, 64);
    model.context = 1024;
    model.embedding = 768;
    model.vocabulary = 50257;
    model.feed_forward = 3072;
    return model;
}

}  // namespace tensorpool::testing
