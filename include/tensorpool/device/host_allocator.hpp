#pragma once

/// @file
/// An allocator of host memory for work on a device's streams, which takes memory from a
/// HostMemorySource.

#include <tensorpool/device/device_allocator.hpp>
#include <tensorpool/device/host_memory_source.hpp>

namespace tensorpool {

namespace device {
struct HostBlocks;
}

/// Allocates the CPU's memory, and ordinary host memory for other devices' runtimes.
///
/// It caches nothing, which is left to the source. A freed block goes back to the source at once.
/// If streams that it was allocated for or used on are busy, it goes back at a later call, after
/// they have passed. If the device is lost, the allocator waits for nothing. A stream whose query
/// returns another error counts as busy until it ends, or until a request that the source refuses
/// waits for the whole device. The allocator does not know graphs: the code that launches a graph
/// must keep the blocks that its work uses.
class TENSORPOOL_API HostAllocator final : public DeviceAllocator {
public:
    /// Makes an allocator that takes memory from `source`. The backend must outlive it. `device` is
    /// what `device()` returns; its index is the backend's.
    HostAllocator(Backend& backend, Device device, std::shared_ptr<HostMemorySource> source);
    /// Waits for the device and gives all memory back, blocks in use included.
    ~HostAllocator() override;

    Device device() const noexcept override;
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    void* host_pointer(void* block) const noexcept override;
    /// Returns the CPU.
    SourceDevice memory_device() const noexcept override;
    /// Returns the requested bytes of the block that begins at this address; 0 if no block in use
    /// begins there.
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    DeviceStatistics statistics() const override;
    std::size_t trim() noexcept override;

    /// Ends a stream that is about to be destroyed and gets no more work. Waits until its work is
    /// done. Its blocks in use then belong to the default stream. Throws DeviceError if the device
    /// cannot wait.
    void end_stream(StreamHandle stream);

private:
    std::unique_ptr<device::HostBlocks> blocks_;
};

}  // namespace tensorpool
