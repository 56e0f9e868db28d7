#pragma once

/// @file
/// What is thrown when a device's memory cannot be had, and why it could not.

#include <cstddef>
#include <cstdint>
#include <new>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_status.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// How things stood when a request failed. All sizes are bytes. Strings are cut to what fits.
struct DeviceAllocationFailure {
    enum class Cause : std::uint8_t {
        request,          ///< larger than any block may be
        limit,            ///< the allocator's own hard limit
        fragmentation,    ///< enough is free, but not in one piece
        own_use,          ///< callers hold too much
        held_back,        ///< freed, but streams have not passed yet
        other_processes,  ///< others hold what is missing
        capture,          ///< a stream is captured, and the device gives no memory meanwhile
        device,           ///< the device failed otherwise; see `status`
    };
    static constexpr std::size_t max_streams = 4;

    Cause cause = Cause::own_use;
    DeviceStatus status = DeviceStatus::out_of_memory;
    Device device = {};
    char allocator[48] = {};
    std::size_t asked = 0;
    std::size_t in_use = 0;
    std::size_t capacity = 0;  ///< of all slabs
    std::size_t free = 0;      ///< in them
    std::size_t free_blocks = 0;
    std::size_t largest_free = 0;
    std::size_t held_back = 0;  ///< freed, but streams have not passed yet
    std::size_t captured = 0;   ///< in slabs of graphs
    std::size_t limit = 0;      ///< hard limit; 0: none
    std::size_t device_free = 0;
    std::size_t device_total = 0;
    std::size_t other_processes = 0;  ///< what of the total is neither free nor the allocator's
    /// What is missing: so much more, free in one piece, would have let it fit.
    std::size_t missing = 0;
    /// Streams that hold freed blocks back, most bytes first.
    struct Holder {
        StreamHandle stream = nullptr;
        std::size_t bytes = 0;
    };
    Holder holders[max_streams] = {};
    std::size_t holder_count = 0;
};

/// "limit", "fragmentation" and so on.
TENSORPOOL_API const char* to_string(DeviceAllocationFailure::Cause cause) noexcept;

/// A request for memory of a device, or for pinned memory, that could not be met. The allocator
/// holds what it held of blocks in use, all of them valid. The text lies in the object: making one
/// allocates nothing.
class TENSORPOOL_API DeviceAllocationError : public std::bad_alloc {
public:
    explicit DeviceAllocationError(const DeviceAllocationFailure& failure) noexcept;
    ~DeviceAllocationError() override;

    /// Several lines: asked, in use, free, held back by whom, what is to blame, what would help.
    const char* what() const noexcept override { return text_; }
    const DeviceAllocationFailure& failure() const noexcept { return failure_; }
    std::size_t asked() const noexcept { return failure_.asked; }

private:
    DeviceAllocationFailure failure_;
    char text_[1024];
};

}  // namespace tensorpool
