#include <tensorpool/device/empty.hpp>

#include <tensorpool/device/runtimes.hpp>

namespace tensorpool {

TensorAllocation empty(std::vector<std::int64_t> shape, DataType type, Device device,
                       std::optional<StreamHandle> stream) {
    if (device == Device{}) return empty(std::move(shape), type);
    const Runtime& runtime = get_runtime(device);
    const StreamHandle used = stream ? *stream : runtime.current_stream();
    return empty(runtime.allocator(), std::move(shape), type, used);
}

}  // namespace tensorpool
