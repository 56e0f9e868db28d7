#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include <tensorpool/model_hyperparameters.hpp>

#include "inspect/model/estimate/cache_type.hpp"
#include "inspect/model/inspect_model.hpp"
#include "common/units.hpp"

namespace tensorpool::command::model {
namespace {

CLI::Option* add_count(CLI::App& command, const char* name, std::uint64_t& value, std::uint64_t max,
                       const char* description) {
    return command.add_option(name, value, description)
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{1}, max));
}

void set_flash_attention(ModelOptions& options, const std::string& word) {
    options.request.flash_attention = word == "on";
}

}  // namespace

void add_options(CLI::App& command, ModelOptions& options) {
    Request& request = options.request;
    CLI::Option* const estimate = command.add_flag(
        "--estimate", options.estimate, "The memory that a model needs, and whether it fits");
    command
        .add_option_function<std::uint64_t>(
            "--context", [&request](std::uint64_t context) { request.context = context; },
            "Positions of a sequence (4096)")
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30))
        ->needs(estimate);
    add_count(command, "--batch", request.batch, 1 << 20, "Tokens computed at once (512)")
        ->needs(estimate);
    add_count(command, "--sequences", request.sequences, 1 << 16, "Sequences at the same time (1)")
        ->needs(estimate);
    command
        .add_option("--kv-type", request.cache,
                    "Cache type: f16 (the default), q8_0, q4_0 and others")
        ->option_text("TYPE")
        ->check(CLI::Validator(problem_of_cache_type, ""))
        ->needs(estimate);
    command
        .add_option_function<std::string>(
            "--flash-attention",
            [&options](const std::string& word) { set_flash_attention(options, word); },
            "on (the default) or off")
        ->option_text("HOW")
        ->check(CLI::IsMember({"on", "off"}))
        ->needs(estimate);
    command
        .add_option_function<std::string>(
            "--device-memory",
            [&request](const std::string& size) { request.device_bytes = parse_size(size); },
            "Memory of a device for layers, as 8GiB")
        ->option_text("SIZE")
        ->check(CLI::Validator(problem_of_size, ""))
        ->needs(estimate);
    command
        .add_option_function<std::uint64_t>(
            "--layers-on-device",
            [&request](std::uint64_t layers) { request.layers_on_device = layers; },
            "As llama.cpp's --n-gpu-layers (all)")
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 32))
        ->needs(estimate);
}

std::string manual_text() {
    return fmt::format(
        "For a MODEL, a file in the format GGUF (version 2 or 3), safetensors, .npy or .npz, the "
        "report shows bytes by element type and by layer, the largest tensors and the metadata. "
        "Only headers are read. --json prints all tensors.\n\n"
        "--estimate reports the memory that a transformer needs and the memory available to this "
        "machine and its container, and on the NVIDIA card with the most free memory, as the "
        "management library of its driver (libnvidia-ml.so.1) reports it. The known architectures "
        "are {}. For a safetensors file, hyperparameters are read from a config.json "
        "beside it. For other files, only the weights are reported. The parts of a split model are "
        "searched in the same folder. The calculation follows llama.cpp:\n\n"
        "WEIGHTS are as in the file. The KEY-VALUE CACHE has, for each layer, sequence and "
        "position, key-value heads times the lengths of key and value, in the type of --kv-type: "
        "{}. A layer with a sliding window keeps the window and one batch. Windows are counted for "
        "gemma2 and gemma3; for others llama.cpp keeps the whole context. COMPUTING is the maximum "
        "of what is alive at once in attention (without flash attention, scores of heads x batch x "
        "context), feed-forward and output (vocabulary x batch), in 32-bit floats.\n\n"
        "With --device-memory or --layers-on-device, some layers are on a device: the output "
        "first, then the layers from the last one back. Embeddings stay on the host. Without "
        "--device-memory, the memory is the free memory of that card.\n\n"
        "The exit status of --estimate is 0 if the model fits and 1 if not. In that case, options "
        "with which it would fit are listed, each estimated in the same way. The status is 4 for a "
        "file that is damaged or has impossible values.\n\n",
        known_architectures(), cache_type_names());
}

}  // namespace tensorpool::command::model
