#include <tensorpool/device/device_allocator.hpp>

namespace tensorpool {

DeviceAllocator::~DeviceAllocator() = default;

}  // namespace tensorpool
