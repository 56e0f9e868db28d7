#pragma once

#include <tensorpool/device/device_allocation_error.hpp>

#include "device/caching/blocks/block.hpp"
#include "events/timeline.hpp"
#include "limits/budget_request.hpp"

namespace tensorpool::device {

class StreamCache;

/// Collects why a request of a caching or pinned allocator failed, under the allocator's lock.
/// `judge` is called last.
class FailureReport {
public:
    using Cause = DeviceAllocationFailure::Cause;

    /// Fills in what the allocator holds.
    FailureReport(DeviceAllocationFailure& failure, const std::string& allocator, Device device,
                  const DeviceStatistics& statistics, std::size_t limit) noexcept;

    void add_free(const StreamCache& cache) noexcept;
    /// Adds a stream that holds back freed blocks.
    void add_holder(const StreamCache& cache) noexcept;
    /// Adds the levels of the budget that refused, if one did.
    void add_budgets(const limits::BudgetRequest& request) noexcept;
    /// Adds the memory of the device.
    void add_device(std::size_t free_bytes, std::size_t total_bytes) noexcept;
    void add_device(Backend& backend) noexcept;
    /// Whether the allocator can obtain all memory that the device reports as free.
    enum class Room { certain, unknown };
    void judge(std::size_t requested, DeviceStatus status, Cause cause, Room room) noexcept;

    /// The entry for the timeline.
    EntryKind entry() const noexcept;
    LimitKind limit() const noexcept;

private:
    DeviceAllocationFailure& failure_;
};

/// Throws DeviceAllocationError for a lack of memory, and DeviceError with the backend's text for
/// any other failure.
[[noreturn]] void throw_failure(const DeviceAllocationFailure& failure, Backend& backend);

/// Ends the process because `address` is not a block that can be freed. `block` is the block found
/// at the address, or nullptr.
[[noreturn]] void fail_free(const std::string& allocator, Device device, const void* address,
                            const Block* block) noexcept;
/// Throws DeviceError because `address` is not a block in use.
[[noreturn]] void throw_not_in_use(const std::string& allocator, Device device, const char* call,
                                   const void* address);

}  // namespace tensorpool::device
