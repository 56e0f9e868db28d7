// Loads a model. Its weights stay in the mapped file and are handed out as DLPack views, or are
// copied to a device through pinned memory. Run it with --help.

#include <unistd.h>

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/device_event.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtimes.hpp>
#include <tensorpool/device/simulated_backend.hpp>
#include <tensorpool/dlpack_model.hpp>
#include <tensorpool/mapped_file.hpp>
#include <tensorpool/memory_lock.hpp>
#include <tensorpool/model_file.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace tensorpool;

constexpr const char* help =
    "usage: model_loader [--device host|simulated|cuda] [--lock] [--check] MODEL\n"
    "\n"
    "Maps a model (GGUF, safetensors, .npy, .npz) and loads its weights, and shows the progress "
    "on\n"
    "standard error: a bar on a terminal, otherwise a line for each tenth.\n"
    "\n"
    "  --device host   (default) into memory, where the file is mapped; each tensor becomes a\n"
    "                  DLPack view, without a copy\n"
    "  --device cuda   to the first CUDA device, through pinned memory; copied parts are\n"
    "                  unmapped. simulated: to a device inside this program\n"
    "  --lock          keeps the weights in memory (host only), as far as the system allows, and\n"
    "                  reports the limit that was reached\n"
    "  --check         compares the contents of the device with the file\n"
    "  --help          print this text\n";

struct Options {
    std::string model;
    std::string device = "host";
    bool lock = false;
    bool check = false;
};

/// Formats a size for people, such as "1.5 GiB".
std::string bytes_text(std::uint64_t bytes) {
    static constexpr const char* units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto shown = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; shown >= 1024 && unit + 1 < std::size(units); ++unit) shown /= 1024;
    char text[32];
    std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", shown, units[unit]);
    return text;
}

/// Shows progress on standard error: a bar on a terminal, otherwise a line for each tenth.
class Progress {
public:
    explicit Progress(std::uint64_t total)
        : total_(total), steps_(isatty(fileno(stderr)) != 0 ? 100 : 10) {}

    void add(std::uint64_t bytes) {
        done_ += bytes;
        const auto steps = static_cast<std::uint64_t>(steps_);
        const auto step = total_ == 0 ? steps_ : static_cast<int>(done_ * steps / total_);
        if (step == shown_) return;
        shown_ = step;
        steps_ == 100 ? show_bar(step) : show_line(step * 10);
    }

private:
    void show_bar(int percent) const {
        constexpr int width = 40;
        const std::string full(static_cast<std::size_t>(percent * width / 100), '#');
        std::fprintf(stderr, "\r[%-*s] %3d %% of %s%s", width, full.c_str(), percent,
                     bytes_text(total_).c_str(), percent == 100 ? "\n" : "");
    }
    void show_line(int percent) const {
        std::fprintf(stderr, "%d %%: %s of %s\n", percent, bytes_text(done_).c_str(),
                     bytes_text(total_).c_str());
    }

    std::uint64_t total_;
    int steps_;
    std::uint64_t done_ = 0;
    int shown_ = 0;
};

/// Sorts the tensors by their position in the file, so that it is read from front to back.
std::vector<const ModelTensor*> in_file_order(const ModelFile& model) {
    std::vector<const ModelTensor*> tensors;
    for (const ModelTensor& tensor : model.tensors()) tensors.push_back(&tensor);
    std::ranges::sort(tensors, {}, [](const ModelTensor* tensor) { return tensor->offset; });
    return tensors;
}

std::uint64_t bytes_of(const std::vector<const ModelTensor*>& tensors) {
    std::uint64_t bytes = 0;
    for (const ModelTensor* tensor : tensors) bytes += tensor->bytes;
    return bytes;
}

// On the host
// --------------------------------------------------------------------------------------

struct CallDeleter {
    void operator()(DLManagedTensor* tensor) const { tensor->deleter(tensor); }
};
/// A view to be passed to a library that accepts DLPack.
using View = std::unique_ptr<DLManagedTensor, CallDeleter>;

/// DLPack has no block-quantized types; libraries that support them receive a view of the bytes.
View hand_out(const std::shared_ptr<const ModelFile>& model, const ModelTensor& tensor) {
    return View(has_dlpack_view(*model, tensor) ? to_dlpack(model, tensor)
                                                : bytes_to_dlpack(model, tensor));
}

void load_on_host(const std::shared_ptr<ModelFile>& model, const Options& options) {
    MappedFile& mapping = *model->mapping();
    const std::vector<const ModelTensor*> tensors = in_file_order(*model);
    MemoryLock lock(mapping.bytes());
    LockOutcome locked;
    std::vector<View> views;
    Progress progress(bytes_of(tensors));
    for (const ModelTensor* tensor : tensors) {
        const FilePart part{tensor->offset, tensor->bytes};
        if (mapping.prefetch(Prefetch::now, part) == Advised::refused) {
            throw std::runtime_error("could not read tensor '" + std::string(tensor->name) +
                                     "': " + std::to_string(mapping.file_bytes()) +
                                     " bytes are left of " + model->name());
        }
        if (options.lock && locked) locked = lock.grow_to(tensor->offset + tensor->bytes);
        views.push_back(hand_out(model, *tensor));
        progress.add(tensor->bytes);
    }
    const auto typed = std::ranges::count_if(
        tensors, [&](const ModelTensor* tensor) { return has_dlpack_view(*model, *tensor); });
    std::printf("views: %zu, and %zu of bytes, whose types DLPack lacks or which are unaligned\n",
                static_cast<std::size_t>(typed), views.size() - static_cast<std::size_t>(typed));
    std::printf("in memory: %s\n", bytes_text(mapping.resident_bytes()).c_str());
    if (!options.lock) return;
    std::printf("locked: %s\n", bytes_text(lock.locked_bytes()).c_str());
    if (!locked) std::fprintf(stderr, "model_loader: %s\n", to_text(locked).c_str());
}

// On a device -------------------------------------------------------------------------------------

constexpr std::size_t piece_bytes = std::size_t{4} << 20;

/// One of two pinned buffers: while one is copied to the device, the other is filled.
struct Lane {
    Lane(Runtime& runtime, StreamHandle stream)
        : pinned(runtime.allocate_pinned(piece_bytes, stream)), copied(runtime) {}
    std::span<std::byte> bytes(std::size_t count) const {
        return {static_cast<std::byte*>(pinned.host_pointer()), count};
    }
    DeviceAllocation pinned;
    DeviceEvent copied;
};

class DeviceLoader {
public:
    DeviceLoader(Runtime& runtime, MappedFile& mapping, Progress& progress)
        : runtime_(runtime),
          mapping_(mapping),
          progress_(progress),
          stream_(runtime),
          lanes_{Lane(runtime, stream_), Lane(runtime, stream_)} {}

    DeviceAllocation load(const ModelTensor& tensor) {
        DeviceAllocation memory = runtime_.allocate(tensor.bytes, stream_);
        for (std::uint64_t at = 0; at < tensor.bytes; at += piece_bytes) {
            const std::size_t bytes = std::min<std::uint64_t>(piece_bytes, tensor.bytes - at);
            load_piece(tensor.offset + at, static_cast<std::byte*>(memory.data()) + at, bytes);
            progress_.add(bytes);
        }
        return memory;
    }
    void finish() const { stream_.synchronize(); }

private:
    void load_piece(std::uint64_t offset, std::byte* to, std::size_t bytes) {
        Lane& lane = lanes_[next_++ % lanes_.size()];
        lane.copied.synchronize();
        // Reads the file rather than the mapping: if another process truncates the file, this fails
        // with an error instead of a signal.
        mapping_.copy_to(offset, lane.bytes(bytes));
        runtime_.copy_host_to_device(to, lane.bytes(bytes).data(), bytes, stream_);
        lane.copied.record(stream_);
    }

    Runtime& runtime_;
    MappedFile& mapping_;
    Progress& progress_;
    DeviceStream stream_;
    std::array<Lane, 2> lanes_;
    std::size_t next_ = 0;
};

bool holds(const DeviceAllocation& memory, std::span<const std::byte> expected) {
    std::vector<std::byte> found(expected.size());
    memory.get(0, found);
    return std::ranges::equal(found, expected);
}

Runtime& choose_runtime(const std::string& name) {
    const Device device = parse_device(name);
    if (device.type == DeviceType::simulated) {
        set_backend(device.type, std::make_shared<SimulatedBackend>());
    }
    if (device.type == DeviceType::cuda && device_count(device.type) == 0) {
        CudaBackend cuda;
        (void)cuda.device_count();
        throw std::runtime_error("there is no CUDA device: " + cuda.last_error());
    }
    return get_runtime(device);
}

void load_on_device(ModelFile& model, const Options& options) {
    Runtime& runtime = choose_runtime(options.device);
    MappedFile& mapping = *model.mapping();
    const std::vector<const ModelTensor*> tensors = in_file_order(model);
    Progress progress(bytes_of(tensors));
    DeviceLoader loader(runtime, mapping, progress);
    std::vector<DeviceAllocation> weights;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const ModelTensor& tensor = *tensors[i];
        // During the copy, the disk reads the next tensor.
        if (i + 1 < tensors.size()) {
            mapping.prefetch(Prefetch::ahead, {tensors[i + 1]->offset, tensors[i + 1]->bytes});
        }
        weights.push_back(loader.load(tensor));
        if (options.check) {
            loader.finish();
            if (!holds(weights.back(), model.bytes(tensor))) {
                throw std::runtime_error("tensor '" + std::string(tensor.name) +
                                         "' differs on the device");
            }
        }
        mapping.unmap({tensor.offset, tensor.bytes});  // names and metadata stay mapped
    }
    loader.finish();
    std::printf("device: %s, %s: %s copied through %zu pinned buffers of %s%s\n",
                to_string(runtime.device()).c_str(), runtime.name().c_str(),
                bytes_text(bytes_of(tensors)).c_str(), std::size_t{2},
                bytes_text(piece_bytes).c_str(), options.check ? ", equal to the file" : "");
    std::printf("unmapped: %s of %s\n", bytes_text(mapping.unmapped_bytes()).c_str(),
                bytes_text(model.file_bytes()).c_str());
}

// -------------------------------------------------------------------------------------------------

void load(const Options& options) {
    const auto model = std::make_shared<ModelFile>(ModelFile::open(options.model));
    std::printf("model: %s, %s version %u, %zu tensors, %s\n", model->name().c_str(),
                to_string(model->format()), model->version(), model->tensors().size(),
                bytes_text(model->file_bytes()).c_str());
    model->mapping()->advise(AccessPattern::sequential);
    options.device == "host" ? load_on_host(model, options) : load_on_device(*model, options);
}

/// Throws std::invalid_argument for unknown arguments.
Options parse(const std::vector<std::string>& arguments) {
    Options options;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == "--lock") {
            options.lock = true;
        } else if (argument == "--check") {
            options.check = true;
        } else if (argument == "--device" && i + 1 < arguments.size()) {
            options.device = arguments[++i];
        } else if (options.model.empty() && !argument.starts_with("--")) {
            options.model = argument;
        } else {
            throw std::invalid_argument("unexpected '" + argument + "'");
        }
    }
    if (options.model.empty()) throw std::invalid_argument("no MODEL");
    if (options.lock && options.device != "host") {
        throw std::invalid_argument("--lock is for --device host");
    }
    return options;
}

}  // namespace

int main(int count, char** values) {
    const std::vector<std::string> arguments(values + 1, values + count);
    if (arguments.size() == 1 && arguments[0] == "--help") return std::fputs(help, stdout) < 0;
    Options options;
    try {
        options = parse(arguments);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "model_loader: %s\n%s", error.what(), help);
        return 2;
    }
    try {
        load(options);
        reset_runtimes();
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "model_loader: %s\n", error.what());
        return 1;
    }
}
