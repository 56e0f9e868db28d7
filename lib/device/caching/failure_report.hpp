#pragma once

#include <cstddef>
#include <string>

#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/timeline.hpp>

#include "device/caching/blocks/block.hpp"
#include "statistics/segment/limit_kind.hpp"

namespace tensorpool::device {

class StreamCache;

/// Why a request of a caching or a pinned allocator failed, put together under the allocator's
/// lock. `judge` comes last.
class FailureReport {
public:
    using Cause = DeviceAllocationFailure::Cause;

    /// What the allocator holds, and what was asked of it.
    FailureReport(DeviceAllocationFailure& failure, const std::string& allocator, Device device,
                  const DeviceStatistics& statistics, std::size_t limit) noexcept;

    void add_free(const StreamCache& cache) noexcept;
    /// A stream that holds freed blocks back.
    void add_holder(const StreamCache& cache) noexcept;
    /// Whether what the device says to be free can be had by this allocator.
    enum class Room { certain, unknown };
    void judge(std::size_t asked, DeviceStatus status, Cause cause, Room room) noexcept;

    /// For the timeline.
    EntryKind entry() const noexcept;
    LimitKind limit() const noexcept;

private:
    DeviceAllocationFailure& failure_;
};

/// What a failure throws: a lack of memory as DeviceAllocationError, all else as DeviceError with
/// what the backend says.
[[noreturn]] void throw_failure(const DeviceAllocationFailure& failure, Backend& backend);

/// Ends the process: `address` is no block that could be freed. `block` is what lies there, or
/// nullptr.
[[noreturn]] void fail_free(const std::string& allocator, Device device, const void* address,
                            const Block* block) noexcept;
/// Throws DeviceError: `address` is no block in use.
[[noreturn]] void throw_not_in_use(const std::string& allocator, Device device, const char* call,
                                   const void* address);

}  // namespace tensorpool::device
