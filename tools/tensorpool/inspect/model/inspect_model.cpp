
#include <dlfcn.h>
#include <fmt/format.h>

#include <system_error>

#include <tensorpool/system_memory.hpp>

#include "common/output.hpp"
#include "formats/trace/trace_file.hpp"
#include "inspect/model/model_report.hpp"

namespace tensorpool::command::model {
namespace {

// The memory of NVIDIA's cards, from their management library, NVML.

constexpr const char* library_name = "libnvidia-ml.so.1";

/// NVML, with the types and functions of NVIDIA's "NVML API Reference Guide". All functions throw
/// std::runtime_error with the reason if NVML fails.
class Nvml {
public:
    Nvml() {
        if (library_ == nullptr)
            throw std::runtime_error(std::string("NVML cannot be loaded: ") + dlerror());
        call<>("nvmlInit_v2");
    }
    ~Nvml() { (void)find<>("nvmlShutdown")(); }
    Nvml(const Nvml&) = delete;
    Nvml& operator=(const Nvml&) = delete;

    unsigned count() const {
        unsigned count = 0;
        call<unsigned*>("nvmlDeviceGetCount_v2", &count);
        return count;
    }
    DeviceMemory card(unsigned index) const {
        Card* card = nullptr;
        call<unsigned, Card**>("nvmlDeviceGetHandleByIndex_v2", index, &card);
        char name[name_bytes] = {};
        call<Card*, char*, unsigned>("nvmlDeviceGetName", card, name, name_bytes);
        Memory memory{};
        call<Card*, Memory*>("nvmlDeviceGetMemoryInfo", card, &memory);
        return {name, memory.free, memory.total};
    }

private:
    struct Card;
    struct Memory {
        unsigned long long total;
        unsigned long long free;
        unsigned long long used;
    };
    static constexpr int success = 0;
    static constexpr unsigned name_bytes = 96;  // NVML_DEVICE_NAME_V2_BUFFER_SIZE

    template <class... Arguments>
    using Function = int (*)(Arguments...);

    template <class... Arguments>
    Function<Arguments...> find(const char* name) const {
        void* const found = dlsym(library_, name);
        if (found == nullptr)
            throw std::runtime_error(std::string(library_name) + " has no " + name);
        return reinterpret_cast<Function<Arguments...>>(found);
    }
    template <class... Arguments>
    void call(const char* name, Arguments... arguments) const {
        const int result = find<Arguments...>(name)(arguments...);
        if (result == success) return;
        const auto error_text =
            reinterpret_cast<const char* (*)(int)>(dlsym(library_, "nvmlErrorString"));
        throw std::runtime_error(std::string(name) + ": " +
                                 (error_text != nullptr ? error_text(result) : "failed"));
    }

    void* const library_ = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
};

/// Stores the card with the most free memory in `memory.device`, or in `memory.why_no_device` why
/// there is none. NVML is loaded at the first call. It makes no CUDA context, which would itself
/// take memory of the card.
void find_card(AvailableMemory& memory) try {
    const Nvml nvml;
    const unsigned count = nvml.count();
    memory.why_no_device = "NVML reports no card";
    for (unsigned index = 0; index < count; ++index) {
        try {
            DeviceMemory card = nvml.card(index);
            if (!memory.device || memory.device->available < card.available)
                memory.device = std::move(card);
        } catch (const std::runtime_error& error) {
            memory.why_no_device = error.what();  // such as a lost card; another one may serve
        }
    }
    if (memory.device) memory.why_no_device.clear();
} catch (const std::runtime_error& error) {
    memory.why_no_device = error.what();
}

/// Calls a function of the library. A file that is damaged, that cannot be opened or that has
/// impossible values is unusable.
template <class Call>
auto checked(Call call) {
    try {
        return call();
    } catch (const ModelFileError& error) {
        throw CommandError(unusable, printable(error.what()));
    } catch (const HyperparameterError& error) {
        throw CommandError(unusable, printable(error.what()));
    } catch (const std::system_error& error) {
        throw CommandError(unusable, printable(error.what()));
    }
}

/// Returns the memory of this machine and its container, and that of a device: the given one, or
/// that of a card.
AvailableMemory memory_for(const Request& request) {
    AvailableMemory memory = {get_available_memory(), get_total_memory(), {}, {}};
    if (request.device_bytes) {
        memory.device = {"a device", *request.device_bytes, *request.device_bytes};
    } else {
        find_card(memory);
    }
    if (request.layers_on_device.value_or(0) > 0 && !memory.device) {
        throw CommandError(wrong_usage, "the memory of a card is unknown: " + memory.why_no_device +
                                            "; give the memory of the device for the layers with "
                                            "--device-memory");
    }
    return memory;
}

Estimation estimate_of(const ModelFile& file, const Request& request) {
    ModelDescription model = checked([&] { return describe_model(file); });
    Estimation estimation = make_estimation(std::move(model.hyperparameters),
                                            std::move(model.weights), request, memory_for(request));
    estimation.source = std::move(model.source);
    estimation.why_unknown = std::move(model.why_unknown);
    return estimation;
}

}  // namespace

void add_options(CLI::App& command, ModelOptions& options) {
    Request& request = options.request;
    const auto count = [](std::uint64_t least, std::uint64_t most) {
        return CLI::Range(least, most);
    };
    CLI::Option* const estimate = command.add_flag(
        "--estimate", options.estimate, "The memory that a model needs, and whether it fits");
    CLI::Option* const all[] = {
        add_option(command, "--context N", request.context, "Positions of a sequence (4096)",
                   count(1, 1 << 30)),
        add_option(command, "--batch N", request.batch, "Tokens computed at once (512)",
                   count(1, 1 << 20)),
        add_option(command, "--sequences N", request.sequences, "Sequences at the same time (1)",
                   count(1, 1 << 16)),
        add_option(command, "--kv-type TYPE", request.cache,
                   "Cache type: f16 (the default), q8_0, q4_0 and others", problem_of_cache_type),
        add_option(command, "--flash-attention HOW", request.flash_attention,
                   "on (the default) or off", CLI::IsMember({"on", "off"})),
        add_option(command, "--device-memory SIZE", request.device_bytes,
                   "Memory of a device for layers, as 8GiB")
            ->transform(as_size()),
        add_option(command, "--layers-on-device N", request.layers_on_device,
                   "As llama.cpp's --n-gpu-layers (all)", count(0, std::uint64_t{1} << 32))};
    for (CLI::Option* const option : all) option->needs(estimate);
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

bool is_model(const std::string& path) try {
    std::array<std::byte, 16> first{};
    trace::Input input(path);
    return guess_model_format(std::span(first).first(input.read(0, first))) != ModelGuess::none;
} catch (const CommandError&) {
    return false;
}

int inspect(const Settings& settings, const ModelOptions& options, const std::string& path,
            std::size_t top) {
    const ModelFile file = checked([&] { return ModelFile::open(path); });
    const Contents contents = sum_up(file, top);
    Report report{file, contents, top, std::nullopt};
    if (options.estimate) report.estimation = estimate_of(file, options.request);
    std::string text =
        settings.json ? json_report(report) : text_report(report, sizes_of(settings));
    if (!settings.json) text.pop_back();
    print_line(text);
    return report.estimation && !report.estimation->fits ? finding : success;
}

}  // namespace tensorpool::command::model
