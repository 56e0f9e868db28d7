#pragma once

#include <cstddef>
#include <mutex>

#include "device/host/range_map.hpp"

namespace tensorpool::device {

/// Maps at least `bytes` of zeros from the system, in huge pages if it is large enough. Unmap it
/// with `bytes` rounded up to whole pages. Throws DeviceError with out_of_memory.
void* map_host_pages(std::size_t bytes);

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

    /// Removes the record of an allocation; the memory stays mapped until `end`, which takes no
    /// lock. `resume` restores the record.
    using Leaving = RangeMap<Kind>::Node;
    Leaving begin_leave(void* memory, std::size_t bytes, Kind kind);
    void resume(Leaving leaving) noexcept;
    static void end(void* memory, std::size_t bytes) noexcept;

    /// Registers memory owned by others. Rejected if a part of it is allocated or registered.
    void add_foreign(void* memory, std::size_t bytes);
    void remove_foreign(void* memory);
    /// Returns whether the whole range lies in one allocation or registration.
    bool contains(const void* memory, std::size_t bytes);

private:
    std::mutex mutex_;
    RangeMap<Kind> ranges_;
    RangeMap<Kind> foreign_;
};

}  // namespace tensorpool::device
