#include <tensorpool/device/empty.hpp>

#include <utility>

#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/runtimes.hpp>

namespace tensorpool {

TensorAllocation empty(std::vector<std::int64_t> shape, DataType type, Device device,
                       StreamHandle stream) {
    if (device == Device{}) return empty(std::move(shape), type);
    return empty(get_runtime(device).allocator(), std::move(shape), type, stream);
}

}  // namespace tensorpool
