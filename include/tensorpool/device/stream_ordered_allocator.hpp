#pragma once

/// @file
/// An allocator of device memory that leaves all caching to the device's driver.

#include <limits>

#include <tensorpool/device/device_allocator.hpp>

namespace tensorpool {

/// The options of a stream-ordered allocator. All sizes are bytes.
struct StreamOrderedOptions {
    /// The name shown in statistics and messages. At most 47 bytes of it are kept.
    std::string name = "ordered";
    /// The memory that the device's default pool may hold when a thread waits for the device; see
    /// `Backend::set_release_threshold`. By default all free memory stays in the pool.
    std::size_t release_threshold = std::numeric_limits<std::size_t>::max();
};

/// Passes each request on to the device's stream-ordered allocation, such as CUDA's
/// `cuMemAllocAsync`. It keeps no free memory itself.
///
/// If other streams used a block (`record_use`), a free makes its stream wait for them on the
/// device, so no thread waits. A block whose streams are captured when it is freed is freed by a
/// later call, after the capture. Requests for a stream that is captured throw DeviceError. Source:
/// NVIDIA's reference, "Stream Ordered Memory Allocator".
class TENSORPOOL_API StreamOrderedAllocator final : public DeviceAllocator {
public:
    /// Makes an allocator for a device of the backend, which must outlive it, and sets the release
    /// threshold of the device. Throws std::invalid_argument, naming what was found and expected,
    /// for a device that does not exist or that lacks stream-ordered allocation, and DeviceError if
    /// the device fails.
    explicit StreamOrderedAllocator(Backend& backend, int device,
                                    const StreamOrderedOptions& options = {});
    /// Waits for the device and frees all blocks, those in use included.
    ~StreamOrderedAllocator() override;

    Device device() const noexcept override;
    void* allocate(std::size_t bytes, StreamHandle stream = nullptr) override;
    void deallocate(void* block) noexcept override;
    void record_use(void* block, StreamHandle stream) override;
    void* host_pointer(void* block) const noexcept override;
    /// Returns the requested bytes of the block that begins at this address; 0 if no block in use
    /// begins there.
    std::size_t usable_size(const void* block) const noexcept override;
    bool is_used_on(const void* block, StreamHandle stream) const noexcept override;
    /// Returns the allocator's statistics. Its capacity is the memory of blocks; free memory in the
    /// device's pool is not counted.
    DeviceStatistics statistics() const override;
    /// Gives the free memory of the device's default pool back, without waiting for the device, and
    /// returns the number of bytes given back.
    std::size_t trim() noexcept override;

    /// Ends a stream that is about to be destroyed and gets no more work. Waits until its work is
    /// done. Its blocks in use then belong to the default stream. Throws DeviceError if the device
    /// cannot wait.
    void end_stream(StreamHandle stream);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
