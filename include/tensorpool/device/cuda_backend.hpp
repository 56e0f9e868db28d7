#pragma once

/// @file
/// The backend for NVIDIA's devices. It uses the driver that is found when the program runs.

#include <memory>

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

namespace device::cuda {
class CudaState;
}

/// The backend of the CUDA driver.
///
/// The driver is loaded by the first call. Neither a toolkit for building nor a driver for starting
/// the program is needed. If there is no driver, one older than CUDA 10.0, or no device, the device
/// count is 0 and `last_error` returns the reason.
///
/// Handles are those of the driver: a StreamHandle is a CUstream, an EventHandle a CUevent, a
/// GraphHandle a CUgraphExec, a MemoryHandle a CUmemGenericAllocationHandle. Memory is at its
/// CUdeviceptr. So streams that the program made itself, or by the CUDA runtime, can be used too.
/// Each device is used through its primary context, which the CUDA runtime and PyTorch use as well.
/// It is made when a function first needs it. A call does not change the thread's current context.
///
/// A copy or fill without a stream follows the default stream by an event, so CUDA rejects it while
/// a stream that was not made with CU_STREAM_NON_BLOCKING is being captured.
///
/// Handles and addresses are passed to the driver unchanged. It detects some wrong ones and may
/// crash on others. Features that the machine's driver lacks are not in `abilities`, and their
/// functions return not_supported.
class TENSORPOOL_API CudaBackend final : public Backend {
public:
    /// Makes a backend of the system's driver: "libcuda.so.1". Throws std::bad_alloc.
    CudaBackend();
    /// Makes a backend of another library with the driver's functions, given by name or path. The
    /// library is never unloaded. Throws std::bad_alloc.
    explicit CudaBackend(const std::string& library);
    /// Releases the contexts. Those that nothing else in the process uses are destroyed, with
    /// everything made in them.
    ~CudaBackend() override;

    DeviceType type() const noexcept override { return DeviceType::cuda; }
    int device_count() noexcept override;
    std::string device_name(int device) override;
    DeviceAbilities abilities(int device) noexcept override;
    DeviceStatus memory_info(int device, DeviceMemoryInfo& info) noexcept override;
    DeviceStatus synchronize_device(int device) noexcept override;

    /// Allocates `bytes` bytes, more than 0, aligned to at least 256, and stores the address in
    /// `memory`. Shared storage is pinned host memory that the device reads and writes over the
    /// bus.
    DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                          void** memory) noexcept override;
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override;
    DeviceStatus allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                void** memory) noexcept override;
    DeviceStatus deallocate_async(int device, void* memory, std::size_t bytes,
                                  StreamHandle stream) noexcept override;
    DeviceStatus set_release_threshold(int device, std::size_t bytes) noexcept override;
    DeviceStatus trim_stream_ordered(int device, std::size_t& given_back) noexcept override;
    void* host_pointer(int device, void* memory) noexcept override;
    DeviceStatus advise_memory(int device, void* memory, std::size_t bytes, MemoryAdvice advice,
                               Processor processor) noexcept override;
    DeviceStatus prefetch_memory(int device, void* memory, std::size_t bytes, Processor processor,
                                 StreamHandle stream) noexcept override;

    DeviceStatus reserve_addresses(int device, std::size_t bytes, void** address) noexcept override;
    DeviceStatus release_addresses(int device, void* address, std::size_t bytes) noexcept override;
    DeviceStatus create_memory(int device, std::size_t bytes,
                               MemoryHandle* memory) noexcept override;
    DeviceStatus create_exportable_memory(int device, std::size_t bytes,
                                          MemoryHandle* memory) noexcept override;
    DeviceStatus export_memory(int device, MemoryHandle memory, int* file) noexcept override;
    DeviceStatus import_memory(int device, int file, MemoryHandle* memory) noexcept override;
    DeviceStatus destroy_memory(int device, MemoryHandle memory) noexcept override;
    /// Maps all of `memory`. All devices that can access the device's memory as peers have access
    /// too.
    DeviceStatus map_memory(int device, void* address, std::size_t bytes,
                            MemoryHandle memory) noexcept override;
    DeviceStatus map_memories(int device, void* address, std::size_t bytes,
                              std::span<const MemoryHandle> memories) noexcept override;
    DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept override;

    DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept override;
    DeviceStatus deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept override;
    DeviceStatus register_pinned(int device, void* memory, std::size_t bytes) noexcept override;
    DeviceStatus unregister_pinned(int device, void* memory) noexcept override;

    DeviceStatus create_stream(int device, StreamHandle* stream,
                               int priority = 0) noexcept override;
    DeviceStatus stream_priorities(int device, StreamPriorities& priorities) noexcept override;
    DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept override;
    bool owns_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus stream_id(int device, StreamHandle stream, std::uint64_t* id) noexcept override;
    DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus query_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus wait_event(int device, StreamHandle stream, EventHandle event) noexcept override;
    DeviceStatus launch_host_function(int device, StreamHandle stream,
                                      void (*function)(void* argument),
                                      void* argument) noexcept override;

    DeviceStatus create_event(int device, EventFlags flags, EventHandle* event) noexcept override;
    DeviceStatus destroy_event(int device, EventHandle event) noexcept override;
    DeviceStatus record_event(int device, EventHandle event, StreamHandle stream) noexcept override;
    DeviceStatus query_event(int device, EventHandle event) noexcept override;
    DeviceStatus synchronize_event(int device, EventHandle event) noexcept override;
    DeviceStatus elapsed_ms(int device, EventHandle from, EventHandle to,
                            float* ms) noexcept override;

    DeviceStatus copy(int device, CopyKind kind, void* to, const void* from,
                      std::size_t bytes) noexcept override;
    DeviceStatus copy_async(int device, CopyKind kind, void* to, const void* from,
                            std::size_t bytes, StreamHandle stream) noexcept override;
    DeviceStatus fill(int device, void* memory, std::uint8_t byte,
                      std::size_t bytes) noexcept override;
    DeviceStatus fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                            StreamHandle stream) noexcept override;

    bool can_access_peer(int device, int peer) noexcept override;
    DeviceStatus enable_peer_access(int device, int peer) noexcept override;
    DeviceStatus copy_peer_async(int to_device, void* to, int from_device, const void* from,
                                 std::size_t bytes, StreamHandle stream) noexcept override;

    DeviceStatus begin_capture(int device, StreamHandle stream) noexcept override;
    DeviceStatus end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept override;
    const std::atomic<unsigned>& captures_under_way() const noexcept override;
    DeviceStatus capture_state(int device, StreamHandle stream,
                               CaptureState& state) noexcept override;
    DeviceStatus launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept override;
    DeviceStatus destroy_graph(int device, GraphHandle graph) noexcept override;

    /// Returns the details of the calling thread's last failed call, as text. If there are no
    /// devices and the thread had no failure, it returns the reason why there are none.
    std::string last_error() override;

private:
    const std::unique_ptr<device::cuda::CudaState> state_;
};

}  // namespace tensorpool
