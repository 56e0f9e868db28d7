#pragma once

#include <tensorpool/device/backend.hpp>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "device/cuda/driver_types.hpp"

namespace tensorpool::device::cuda {

/// What is known of one device. The first part does not change.
struct CudaDevice {
    explicit CudaDevice(int its_index) noexcept : index(its_index) {}

    const int index;
    DeviceNumber number = 0;
    std::string name;
    DeviceAbilities abilities;

    /// Made under the lock, when first needed; released stores pair with acquiring loads.
    std::mutex making;
    std::atomic<Context> context = nullptr;
    std::atomic<Stream> copy_stream = nullptr;  // for copies that are done when the call returns

    std::mutex mapping;  // of the two below
    std::map<DeviceAddress, std::size_t> mappings;
    std::vector<DeviceNumber> readers = {};  // peers that have access to this one's memory
};

}  // namespace tensorpool::device::cuda
