#pragma once

/// @file
/// An allocator of pinned host memory for copies to and from a device, which reuses freed memory
/// without calls to the system.

#include <tensorpool/device/device_allocation_error.hpp>
#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/pinned_options.hpp>

namespace tensorpool {

namespace device {
class PinnedCore;
}

/// Cuts blocks from slabs of pinned host memory, and splits and joins them. Sizes are rounded up to
/// multiples of 512 B, and above 1 MiB of 16 KiB, not to powers of two.
///
/// The host writes such a block at once, in no stream's order. So a block that streams use is not
/// reused until all of them have passed the work submitted before it was freed: the streams of
/// `record_use` and the one passed to `allocate`. Each stream has a queue of its own, so a slow one
/// holds back only its own blocks. A block without a stream is free again at once, for any thread,
/// in a few lists with short locks that the threads share.
class TENSORPOOL_API PinnedAllocator final : public DeviceAllocator {
public:
    /// Makes an allocator for a device of the backend, which must outlive it. Throws
    /// std::invalid_argument, naming what was found and expected, for invalid options and for a
    /// device that does not exist.
    explicit PinnedAllocator(Backend& backend, int device, const PinnedOptions& options = {});
    /// Waits for the device and gives all memory back, blocks in use included.
    ~PinnedAllocator() override;

    /// Returns the device whose streams use the memory. Other devices of the backend may copy from
    /// it too.
    Device device() const noexcept override;
    /// Allocates `bytes` bytes, aligned to at least 256. The content is undefined. Returns nullptr
    /// for 0. A stream other than nullptr uses the block until it is freed; with nullptr no stream
    /// does. Record a use on the default stream by `record_use`, like one on any other. Throws
    /// DeviceAllocationError if the memory is unavailable, and DeviceError if the device fails
    /// otherwise. At the limit, it waits up to `PinnedOptions::pinned_wait` for copies that hold
    /// freed blocks back.
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    /// Allocates like `allocate`, and waits like it, but returns nullptr if the request cannot be
    /// met.
    void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    void* host_pointer(void* block) const noexcept override;
    /// Returns DLPack's pinned memory of CUDA, for other devices than those of CUDA the CPU.
    SourceDevice memory_device() const noexcept override;
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    DeviceStatistics statistics() const override;
    std::size_t trim() noexcept override;

    /// Sets the limit, as `PinnedOptions::max_bytes` does; 0 means no limit. If the allocator holds
    /// more, it gives free memory back, and then gets no new memory until it holds less.
    void set_limit(std::size_t bytes) noexcept;

    /// Ends a stream that is about to be destroyed and gets no more work. Waits until its work is
    /// done. It then uses none of the blocks any more. Throws DeviceError if the device cannot
    /// wait.
    void end_stream(StreamHandle stream);

private:
    std::unique_ptr<device::PinnedCore> core_;
};

}  // namespace tensorpool
