// A small pipeline on any available device. Tensors pass through it in pieces, on two streams, so
// that one piece arrives while the previous one leaves. Run it with --help.

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/device_allocation.hpp>
#include <tensorpool/device/device_stream.hpp>
#include <tensorpool/device/runtimes.hpp>
#include <tensorpool/device/simulated_backend.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace tensorpool;

constexpr std::size_t pieces = 16;
constexpr std::size_t piece_elements = 64 * 1024;
constexpr std::size_t piece_bytes = piece_elements * sizeof(float);

constexpr const char* help =
    "usage: device_pipeline [--device cpu|cuda|simulated|auto]\n"
    "\n"
    "Copies a tensor to a device in pieces on one stream, and from there back on another, with\n"
    "events between them, checks the result, and prints statistics.\n"
    "\n"
    "  --device D  the first device of this type; auto (default): the first CUDA device,\n"
    "              or else the CPU. simulated: a device inside this program that also\n"
    "              checks the order of all operations.\n"
    "  --help      print this text\n";

Device choose(const std::string& name) {
    if (name == "auto") {
        const bool has_cuda = device_count(DeviceType::cuda) > 0;
        return {has_cuda ? DeviceType::cuda : DeviceType::cpu, 0};
    }
    const Device device = parse_device(name);
    if (device.type == DeviceType::simulated) {
        set_backend(device.type, std::make_shared<SimulatedBackend>());
    }
    if (device.type == DeviceType::cuda && device_count(device.type) == 0) {
        CudaBackend cuda;
        (void)cuda.device_count();
        throw std::runtime_error("there is no CUDA device: " + cuda.last_error());
    }
    return device;
}

std::vector<float> make_tensor() {
    std::vector<float> elements(pieces * piece_elements);
    std::iota(elements.begin(), elements.end(), 1.0f);
    return elements;
}

/// One of two slots in the pipeline: while one is filled, the other is emptied.
struct Lane {
    Lane(Runtime& runtime, StreamHandle in, StreamHandle out)
        : from(runtime.allocate_pinned(piece_bytes, in)),
          arriving(runtime.allocate(piece_bytes, in)),
          leaving(runtime.allocate(piece_bytes, out)),
          to(runtime.allocate_pinned(piece_bytes, out)),
          arrived(runtime),
          left(runtime) {
        arriving.set_shape({{piece_elements}, sizeof(float)});
    }

    std::span<std::byte> host(const DeviceAllocation& pinned) const {
        return {static_cast<std::byte*>(pinned.host_pointer()), pinned.size()};
    }

    DeviceAllocation from;  // pinned
    DeviceAllocation arriving;
    DeviceAllocation leaving;
    DeviceAllocation to;  // pinned
    DeviceEvent arrived;
    DeviceEvent left;
};

void give_piece(Runtime& runtime, Lane& lane, std::span<const float> piece, const DeviceStream& in,
                const DeviceStream& out) {
    // The host may write `from` again when its last copy has ended, and the device may write
    // `arriving` when the other stream has read it.
    lane.arrived.synchronize();
    const std::span<const std::byte> bytes = std::as_bytes(piece);
    std::copy(bytes.begin(), bytes.end(), lane.host(lane.from).begin());
    in.wait(lane.left);
    runtime.copy_host_to_device(lane.arriving.data(), lane.from.data(), piece_bytes, in);
    lane.arrived.record(in);

    out.wait(lane.arrived);
    runtime.copy_device_to_device(lane.leaving.data(), lane.arriving.data(), piece_bytes, out);
    lane.left.record(out);
    runtime.copy_device_to_host(lane.to.data(), lane.leaving.data(), piece_bytes, out);
}

/// Sums the tensor after it has passed through the pipeline, on the host, in the order of the
/// output stream.
double run(Runtime& runtime, const std::vector<float>& tensor) {
    double sum = 0;  // must outlive the stream that adds to it
    const DeviceStream in(runtime);
    const DeviceStream out(runtime);
    std::vector<std::unique_ptr<Lane>> lanes;
    for (int i = 0; i < 2; ++i) lanes.push_back(std::make_unique<Lane>(runtime, in, out));
    for (std::size_t piece = 0; piece < pieces; ++piece) {
        Lane& lane = *lanes[piece % lanes.size()];
        const auto first = tensor.begin() + static_cast<std::ptrdiff_t>(piece * piece_elements);
        give_piece(runtime, lane, {first, piece_elements}, in, out);
        out.launch([&sum, result = static_cast<const float*>(lane.to.host_pointer())] {
            sum = std::accumulate(result, result + piece_elements, sum);
        });
    }
    out.synchronize();
    return sum;
}

/// Fills, copies and reads back a tensor on the device; returns whether the result is correct.
bool copy_on_device(Runtime& runtime) {
    DeviceAllocation first = runtime.allocate(piece_bytes);
    DeviceAllocation second = runtime.allocate(piece_bytes);
    first.fill(0x3f);
    second.copy_from(first);
    std::vector<std::byte> result(piece_bytes);
    second.get(0, result);
    return result == std::vector<std::byte>(piece_bytes, std::byte{0x3f});
}

bool hazards_were_found(Runtime& runtime) {
    const auto* const simulated = dynamic_cast<SimulatedBackend*>(&runtime.backend());
    if (simulated == nullptr) return false;
    std::printf("hazards found: %llu\n%s",
                static_cast<unsigned long long>(simulated->hazard_count()),
                simulated->hazard_report().c_str());
    return simulated->hazard_count() != 0;
}

int show(const Device& device) {
    Runtime& runtime = get_runtime(device);
    runtime.activate();
    std::printf("device: %s, %s\n", to_string(current_device()).c_str(), runtime.name().c_str());

    const std::vector<float> tensor = make_tensor();
    const double expected = std::accumulate(tensor.begin(), tensor.end(), 0.0);
    const double sum = run(runtime, tensor);
    const bool copied = copy_on_device(runtime);
    std::printf("pipeline: %zu pieces of %zu bytes on two streams, sum %.0f, expected %.0f\n",
                pieces, piece_bytes, sum, expected);
    std::printf("copy on the device: %s\n", copied ? "as expected" : "wrong");
    std::printf("%s", to_text(runtime.allocator().statistics()).c_str());
    std::printf("%s", to_text(runtime.pinned_allocator().statistics()).c_str());
    return sum == expected && copied && !hazards_were_found(runtime) ? 0 : 1;
}

}  // namespace

int main(int count, char** values) {
    std::string device = "auto";
    const std::vector<std::string> arguments(values + 1, values + count);
    if (arguments.size() == 1 && arguments[0] == "--help") return std::fputs(help, stdout) < 0;
    if (arguments.size() == 2 && arguments[0] == "--device") {
        device = arguments[1];
    } else if (!arguments.empty()) {
        std::fputs(help, stderr);
        return 2;
    }
    try {
        const int result = show(choose(device));
        tensorpool::reset_runtimes();
        return result;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "device_pipeline: %s\n", error.what());
        return 2;
    }
}
