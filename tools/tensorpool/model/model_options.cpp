#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "model/estimate/cache_type.hpp"
#include "model/estimate/hyperparameters.hpp"
#include "model/inspect_model.hpp"
#include "run/size_text.hpp"

namespace tensorpool::command::model {
namespace {

CLI::Option* add_count(CLI::App& command, const char* name, std::uint64_t& value,
                       std::uint64_t most, const char* description) {
    return command.add_option(name, value, description)
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{1}, most));
}

void set_flash_attention(ModelOptions& options, const std::string& word) {
    options.asked.flash_attention = word == "on";
}

}  // namespace

void add_options(CLI::App& command, ModelOptions& options) {
    Asked& asked = options.asked;
    CLI::Option* const estimate = command.add_flag(
        "--estimate", options.estimate, "Of a model: the memory it needs, and whether it fits");
    command
        .add_option_function<std::uint64_t>(
            "--context", [&asked](std::uint64_t context) { asked.context = context; },
            "Positions of a sequence (4096)")
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 30))
        ->needs(estimate);
    add_count(command, "--batch", asked.batch, 1 << 20, "Tokens computed at once (512)")
        ->needs(estimate);
    add_count(command, "--sequences", asked.sequences, 1 << 16, "Sequences at the same time (1)")
        ->needs(estimate);
    command
        .add_option("--kv-type", asked.cache,
                    "Of the cache: f16 (the default), q8_0, q4_0 and others")
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
            [&asked](const std::string& size) { asked.device_bytes = run::parse_size(size); },
            "Of a device that takes layers, such as 8GiB")
        ->option_text("SIZE")
        ->check(CLI::Validator(run::problem_of_size, ""))
        ->needs(estimate);
    command
        .add_option_function<std::uint64_t>(
            "--layers-on-device",
            [&asked](std::uint64_t layers) { asked.layers_on_device = layers; },
            "As llama.cpp's --n-gpu-layers (all)")
        ->option_text("N")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1} << 32))
        ->needs(estimate);
}

std::string manual_text() {
    return fmt::format(
        "Of a MODEL, a file of GGUF (version 2 or 3), safetensors, .npy or .npz, it tells what it "
        "holds by the type of its elements and by layer, the largest tensors and the metadata; "
        "nothing but the headers is read. --json prints all tensors.\n\n"
        "--estimate tells the memory that a transformer needs, and what this machine and its "
        "container have available; CUDA's first device too, where there is one. Known are the "
        "architectures {}; of a safetensors file a config.json beside it is asked. Of other files "
        "the weights alone are told. The parts of a split model are looked for beside it. Figures "
        "are those of llama.cpp:\n\n"
        "WEIGHTS are as in the file. The KEY-VALUE CACHE has for each layer, sequence and position "
        "key-value heads times the lengths of key and value, in the type of --kv-type: {}. A layer "
        "with a sliding window keeps the window and one batch; windows are counted for gemma2 and "
        "gemma3, while of others llama.cpp keeps the whole context. COMPUTING is the largest of "
        "what is alive at once in attention (without flash attention scores of heads x batch x "
        "context), feed-forward and output (vocabulary x batch), in floats of 32 bits.\n\n"
        "With --device-memory or --layers-on-device some layers are on a device: the first of "
        "these layers is the output, then come the model's from the last one back. Embeddings stay "
        "on the host. Without --device-memory the memory is what CUDA's first device has free.\n\n"
        "The exit status of --estimate is 0 where it fits and 1 where it does not; then what would "
        "is listed, each line estimated in the same way. A file that is damaged, or has impossible "
        "figures, makes it 4.\n\n",
        family_names(), cache_type_names());
}

}  // namespace tensorpool::command::model
