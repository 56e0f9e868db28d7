#pragma once

#include <cstddef>
#include <mutex>

#include "device/host/range_map.hpp"

namespace tensorpool::device {

/// At least `bytes` of zeros from the system, in huge pages where there are enough; unmapped with
/// `bytes` rounded up to pages. Throws DeviceError with out_of_memory.
void* map_host_pages(std::size_t bytes);

/// Memory from the system, whole pages of zeros, and who has it. Each kind of it is told from
/// others by a number. What is wrong with a call is thrown as DeviceError. Any thread.
class HostMemory {
public:
    using Kind = int;

    HostMemory() noexcept = default;
    /// All that was not given back goes.
    ~HostMemory();
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    void* allocate(std::size_t bytes, Kind kind);
    void deallocate(void* memory, std::size_t bytes, Kind kind);

    /// Nobody's any more, and still there until `end` is called, which needs no lock of ours; or
    /// until `resume` makes it what it was.
    using Leaving = RangeMap<Kind>::Node;
    Leaving begin_leave(void* memory, std::size_t bytes, Kind kind);
    void resume(Leaving leaving) noexcept;
    static void end(void* memory, std::size_t bytes) noexcept;

    /// Remembers memory of somebody else's; refused where a part of it is remembered.
    void add_foreign(void* memory, std::size_t bytes);
    void remove_foreign(void* memory);

private:
    std::mutex mutex_;
    RangeMap<Kind> ranges_;
    RangeMap<Kind> foreign_;
};

}  // namespace tensorpool::device
