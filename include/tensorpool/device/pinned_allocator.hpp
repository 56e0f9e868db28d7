#pragma once

/// @file
/// Host memory whose pages stay where they are, for copies to and from a device, handed out again
/// without asking the system.

#include <cstddef>
#include <memory>

#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/pinned_options.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class PinnedCore;
}

/// Blocks cut from slabs of pinned host memory, split and joined again: a size is rounded up to
/// 512 B, above 1 MiB to 16 KiB, never to a power of two.
///
/// The host writes such a block at once, in no stream's order. So one that streams use is nobody's
/// until all of them have passed what they were given before it was freed: those of `record_use`,
/// and the one that `allocate` was told. Each stream has a queue of its own: a slow one holds back
/// its own blocks only. A block without a stream is free again at once, for any thread, by way of
/// a few lists with short locks, each of some of the threads.
class TENSORPOOL_API PinnedAllocator final : public DeviceAllocator {
public:
    /// The backend outlives it. Throws std::invalid_argument, naming what was found and expected,
    /// for options that make no sense or a device that is not there.
    explicit PinnedAllocator(Backend& backend, int device, const PinnedOptions& options = {});
    /// Waits for the device and gives all back, blocks in use included.
    ~PinnedAllocator() override;

    /// The one whose streams use the memory; other devices of the backend may copy from it too.
    Device device() const noexcept override;
    /// A stream that is named uses the block until it is freed. nullptr: no stream does; the
    /// default stream is told, as any other, by `record_use`.
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    DeviceStatistics statistics() const override;
    std::size_t trim() noexcept override;

    /// The stream is about to be destroyed, and no more work is given to it. Waits until its work
    /// is done; blocks in use are not its any more. Throws DeviceError where the device cannot
    /// wait.
    void end_stream(StreamHandle stream);

private:
    std::unique_ptr<device::PinnedCore> core_;
};

}  // namespace tensorpool
