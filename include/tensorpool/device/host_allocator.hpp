#pragma once

/// @file
/// Host memory for work on a device's streams, from a source handed in.

#include <cstddef>
#include <memory>

#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/host_memory_source.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class HostBlocks;
}

/// The CPU's memory, and ordinary host memory of other devices' runtimes. It keeps nothing for
/// later, that is the source's business: a block goes back to it when it is freed, or, where
/// streams that it was made for or used on are busy then, at a later call after they have passed.
/// When the device is lost nothing is waited for; a stream that answers with any other error is
/// taken to be busy, until it ends or a request that the source refuses waits for the whole device.
/// It knows of no graphs: a block that captured work uses is kept, by whoever launches the graph,
/// for as long as that is launched.
class TENSORPOOL_API HostAllocator final : public DeviceAllocator {
public:
    /// The backend outlives it. `device` is what `device()` says; its index is the backend's.
    HostAllocator(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source);
    /// Waits for the device and gives all back, blocks in use included.
    ~HostAllocator() override;

    Device device() const noexcept override;
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    void* try_allocate(std::size_t bytes, StreamHandle stream = nullptr) noexcept override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    /// What was asked for.
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    DeviceStatistics statistics() const override;
    std::size_t trim() noexcept override;

    /// The stream is about to be destroyed, and no more work is given to it. Waits until its work
    /// is done; blocks in use that were made for it are the default stream's from now on. Throws
    /// DeviceError where the device cannot wait.
    void end_stream(StreamHandle stream);

private:
    std::unique_ptr<device::HostBlocks> blocks_;
};

}  // namespace tensorpool
