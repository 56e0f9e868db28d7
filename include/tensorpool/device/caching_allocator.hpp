#pragma once

/// @file
/// Device memory that is handed out again without asking the device.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tensorpool/device/allocator_events.hpp>
#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class CachingCore;
}

/// Blocks cut from slabs of device memory, by stream: what was freed on a stream serves that stream
/// again at once, in its order, without an event or a wait.
///
/// Sizes are rounded up to 512 B, above 1 MiB by less than a sixty-fourth. A block freed lately is
/// taken again by its exact rounded size under its stream's own short lock; otherwise the free
/// blocks of the stream are searched for the best fit. Ideas: best fit by stream from PyTorch's
/// caching allocator, the order of giving back and the bound on reuse from its Metal one.
class TENSORPOOL_API CachingAllocator final : public DeviceAllocator {
public:
    /// The backend outlives it. Throws std::invalid_argument, naming what was found and expected,
    /// for options that make no sense or a device that is not there.
    explicit CachingAllocator(Backend& backend, int device, const CachingOptions& options = {});
    /// Waits for the device and gives all back, blocks in use included.
    ~CachingAllocator() override;

    Device device() const noexcept override;
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    DeviceStatistics statistics() const override;
    /// Gives nothing back while one of its streams is captured.
    std::size_t trim() noexcept override;

    /// As `allocate` for a constant of 1 to 8 bytes: 64 of them share one block of a slab, each 8
    /// bytes apart, so they are aligned to 8 only. Freed by `deallocate`; `record_use` is theirs
    /// too. Throws std::invalid_argument for other sizes.
    void* allocate_scalar(std::size_t bytes, StreamHandle stream = nullptr);

    /// The stream is about to be destroyed, and no more work is given to it. Waits until its work
    /// is done; what was free for it is the default stream's, and what is in use will be. Throws
    /// DeviceError where the device cannot wait.
    void end_stream(StreamHandle stream);

    /// Called from now on, until removed, for everything of AllocatorEvent. While there is any,
    /// calls take the slow path. The number is for `remove_callback`. Throws std::bad_alloc.
    std::uint64_t add_callback(AllocatorCallback callback);
    /// Calls under way on other threads may still go on. False for a number that is not there.
    bool remove_callback(std::uint64_t number) noexcept;

    // Captures. Blocks allocated while their stream is captured come from memory of that capture
    // only, and return there: a replay finds them where they were.

    /// Slabs for captures to come, for backends that give none meanwhile. Throws as `allocate`.
    void reserve_for_capture(std::size_t bytes);
    /// With CaptureDetection::announced: from now on, and until as many `end_capture`, the backend
    /// is asked at each allocation whether the stream is captured.
    void begin_capture() noexcept;
    void end_capture() noexcept;
    /// The graph of this capture (`CaptureState::id`) is gone: waits for the device, and its memory
    /// is everybody's again. Does nothing for a number without blocks. Throws DeviceError where
    /// the device cannot wait.
    void release_capture(std::uint64_t id);

private:
    std::unique_ptr<device::CachingCore> core_;
};

}  // namespace tensorpool
