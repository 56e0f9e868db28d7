#pragma once

/// @file
/// The backend for the CPU as a device.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// The backend of one device of type cpu, whose memory is the host's.
///
/// Each stream has a worker thread, which starts with the first work submitted to it and ends with
/// the stream; the default stream's ends with the backend. Events need no thread: one recorded
/// without work under way is reached at once. Operations without a stream wait for the default
/// stream and run on the calling thread. A stream that is destroyed with work under way still does
/// the work, and the destructor waits for that.
///
/// As with CUDA's driver, up to 64 KiB of pageable memory are copied to the device without a wait;
/// larger copies of it wait for the stream, and so do copies from the device to pageable memory.
/// These are done when the call returns.
///
/// Memory is pages of the system. All kinds of storage are the same, and `host_pointer` is the
/// address. An allocation of 1 byte takes a page, because allocators above request slabs. Pinned
/// memory is ordinary memory aligned to a page: only processors copy it, so it need not stay in
/// place, and it does not count against the limit of locked memory. Registrations are stored, so
/// registering twice is detected. Virtual memory is supported on Linux 5.7 and later; memory can be
/// mapped at one address at a time.
///
/// A graph's work runs piece by piece in the order of submission, regardless of the streams in
/// which it was captured. Stream-ordered allocation returns in_capture in a captured stream. A
/// capture is over when it is ended, even if that fails because not all streams have joined again.
class TENSORPOOL_API HostBackend final : public Backend {
public:
    /// Makes a backend without starting a thread. Throws std::bad_alloc.
    HostBackend();
    /// Waits for all work. REQUIRES: no other thread uses the backend.
    ~HostBackend() override;

    DeviceType type() const noexcept override;
    int device_count() noexcept override;
    std::string device_name(int device) override;
    DeviceAbilities abilities(int device) noexcept override;
    DeviceStatus memory_info(int device, DeviceMemoryInfo& info) noexcept override;
    DeviceStatus settle_memory(int device) noexcept override;
    DeviceStatus synchronize_device(int device) noexcept override;

    DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                          void** memory) noexcept override;
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override;
    DeviceStatus allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                void** memory) noexcept override;
    DeviceStatus deallocate_async(int device, void* memory, std::size_t bytes,
                                  StreamHandle stream) noexcept override;
    /// Does nothing: freed memory returns to the system at once.
    DeviceStatus set_release_threshold(int device, std::size_t bytes) noexcept override;
    DeviceStatus trim_stream_ordered(int device, std::size_t& given_back) noexcept override;
    void* host_pointer(int device, void* memory) noexcept override;
    /// Accepts advice for any memory of the process. It has no effect, because the host accesses
    /// all memory where it is.
    DeviceStatus advise_memory(int device, void* memory, std::size_t bytes, MemoryAdvice advice,
                               Processor processor) noexcept override;
    DeviceStatus prefetch_memory(int device, void* memory, std::size_t bytes, Processor processor,
                                 StreamHandle stream) noexcept override;

    DeviceStatus reserve_addresses(int device, std::size_t bytes, void** address) noexcept override;
    DeviceStatus release_addresses(int device, void* address, std::size_t bytes) noexcept override;
    DeviceStatus create_memory(int device, std::size_t bytes,
                               MemoryHandle* memory) noexcept override;
    DeviceStatus destroy_memory(int device, MemoryHandle memory) noexcept override;
    DeviceStatus map_memory(int device, void* address, std::size_t bytes,
                            MemoryHandle memory) noexcept override;
    DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept override;

    DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept override;
    DeviceStatus deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept override;
    DeviceStatus register_pinned(int device, void* memory, std::size_t bytes) noexcept override;
    DeviceStatus unregister_pinned(int device, void* memory) noexcept override;

    DeviceStatus create_stream(int device, StreamHandle* stream,
                               int priority = 0) noexcept override;
    DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept override;
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

    DeviceStatus begin_capture(int device, StreamHandle stream) noexcept override;
    DeviceStatus end_capture(int device, StreamHandle stream, GraphHandle* graph) noexcept override;
    const std::atomic<unsigned>& captures_under_way() const noexcept override;
    DeviceStatus capture_state(int device, StreamHandle stream,
                               CaptureState& state) noexcept override;
    DeviceStatus launch_graph(int device, GraphHandle graph, StreamHandle stream) noexcept override;
    DeviceStatus destroy_graph(int device, GraphHandle graph) noexcept override;

    std::string last_error() override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
