#include <dlfcn.h>

#include <system_error>

#include <tensorpool/system_memory.hpp>

#include "common/output.hpp"
#include "formats/trace/trace_file.hpp"
#include "inspect/model/model_report.hpp"

namespace tensorpool::command::model {
namespace {

constexpr std::uint64_t usual_context = 4096;

InferencePlan plan_of(const ModelHyperparameters& model, const Request& request) {
    InferencePlan plan;
    const std::uint64_t trained = model.context == 0 ? usual_context : model.context;
    plan.context = request.context.value_or(std::min(usual_context, trained));
    plan.batch = request.batch;
    plan.sequences = request.sequences;
    plan.cache = *find_kv_cache_type(request.cache);
    plan.flash_attention = request.flash_attention;
    const std::uint64_t all = model.layers.size() + 1;
    if (request.layers_on_device || request.device_bytes)
        plan.layers_on_device = std::min(request.layers_on_device.value_or(all), all);
    return plan;
}

MemoryRoom room_of(const Estimation& estimation) {
    const bool uses = estimation.plan.layers_on_device > 0 && estimation.memory.device;
    return {estimation.memory.available, uses ? estimation.memory.device->available : 0};
}

/// Returns the model as if the window were used in each layer.
ModelHyperparameters with_window(ModelHyperparameters model) {
    for (AttentionLayer& layer : model.layers) layer.window = model.unused_window;
    return model;
}

/// Returns how many layers would fit on a device that is present but not requested.
std::uint64_t layers_that_fit(const Estimation& estimation) {
    const auto& device = estimation.memory.device;
    if (!device || estimation.plan.layers_on_device > 0) return 0;
    const PlanFitter fitter(*estimation.model, estimation.weights,
                            {estimation.memory.available, device->available});
    InferencePlan plan = estimation.plan;
    for (plan.layers_on_device = estimation.model->layers.size() + 1; plan.layers_on_device > 0;
         --plan.layers_on_device) {
        if (fitter.fits(plan)) break;
    }
    return plan.layers_on_device;
}

void add_fit(Estimation& estimation) {
    const ModelHyperparameters& model = *estimation.model;
    const PlanFitter fitter(model, estimation.weights, room_of(estimation));
    const InferencePlan& plan = estimation.plan;
    const std::uint64_t max = std::max({model.context, plan.context, usual_context});
    estimation.fits = fitter.fits(plan);
    estimation.largest_context = fitter.largest_context(plan, max);
    if (!estimation.fits) estimation.suggestions = fitter.suggestions(plan);
    estimation.fitting_layers = layers_that_fit(estimation);
    if (model.unused_window > 0 && model.unused_window < plan.context)
        estimation.with_unused_window =
            estimate_memory(with_window(model), estimation.weights, plan);
}

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

std::string cache_type_names() {
    std::string names;
    for (const KvCacheType& type : kv_cache_types()) names += fmt::format(", {}", type.name);
    return names.substr(2);
}

std::string problem_of_cache_type(const std::string& name) {
    if (find_kv_cache_type(name) != nullptr) return "";
    return fmt::format("'{}' is not a type of a cache; expected one of {}", printable(name),
                       cache_type_names());
}

}  // namespace

Estimation make_estimation(std::optional<ModelHyperparameters> model, ModelWeights weights,
                           const Request& request, AvailableMemory memory) {
    Estimation estimation;
    estimation.model = std::move(model);
    estimation.weights = std::move(weights);
    estimation.memory = std::move(memory);
    if (!estimation.model) {
        estimation.need.host.weights = estimation.weights.total();
        estimation.fits = estimation.need.host.weights <= estimation.memory.available;
        return estimation;
    }
    estimation.plan = plan_of(*estimation.model, request);
    const std::string problem = problem_of_cache(*estimation.model, estimation.plan);
    if (!problem.empty()) throw CommandError(wrong_usage, problem);
    estimation.need = estimate_memory(*estimation.model, estimation.weights, estimation.plan);
    add_fit(estimation);
    return estimation;
}

std::string options_between(const InferencePlan& request, const InferencePlan& plan) {
    std::string options;
    if (plan.layers_on_device != request.layers_on_device)
        options += fmt::format(" --layers-on-device {}", plan.layers_on_device);
    if (plan.context != request.context) options += fmt::format(" --context {}", plan.context);
    if (plan.sequences != request.sequences)
        options += fmt::format(" --sequences {}", plan.sequences);
    if (plan.cache.name != request.cache.name)
        options += fmt::format(" --kv-type {}", plan.cache.name);
    if (plan.flash_attention != request.flash_attention) options += " --flash-attention on";
    if (plan.batch != request.batch) options += fmt::format(" --batch {}", plan.batch);
    return options.empty() ? options : options.substr(1);
}

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
    if (settings.json) {
        print_line(json_report(report));
    } else {
        print_text(text_report(report, sizes_of(settings)));
    }
    return report.estimation && !report.estimation->fits ? finding : success;
}

}  // namespace tensorpool::command::model
