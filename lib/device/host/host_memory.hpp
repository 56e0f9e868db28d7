#pragma once

#include <cstddef>
#include <mutex>

#include "device/host/range_map.hpp"

namespace tensorpool::device {

/// Memory from the system, in whole pages of zeros, and the record of what is allocated. Kinds of
/// memory are distinguished by a number. Errors are thrown as DeviceError. Any thread.
class HostMemory {
public:
    using Kind = int;

    HostMemory() noexcept = default;
    /// Unmaps everything that was not freed.
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    void* allocate(std::size_t bytes, Kind kind);
    /// Does nothing for nullptr.
    void deallocate(void* memory, std::size_t bytes, Kind kind);

    /// Registers memory owned by others. Rejected if a part of it is allocated or registered.
    void add_foreign(void* memory, std::size_t bytes);
    void remove_foreign(void* memory);

private:
    std::mutex mutex_;
    RangeMap<Kind> ranges_;
    RangeMap<Kind> foreign_;
};

}  // namespace tensorpool::device
