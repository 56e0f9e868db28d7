#pragma once

/// @file
/// The backend for the CPU as a device.

#include <memory>

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

/// The backend of one device of type cpu, whose memory is the host's.
///
/// It has no threads: work is done by the call that submits it. So events are reached when they are
/// recorded, and only work that another thread is submitting can be pending. A host function must
/// therefore not wait for anything that the calling thread does later. SimulatedBackend has streams
/// that run behind the program.
///
/// Memory is pages of the system. All kinds of storage are the same, and `host_pointer` is the
/// address. An allocation of 1 byte takes a page, because allocators above request slabs. Pinned
/// memory is ordinary memory aligned to a page: only processors copy it, so it need not stay in
/// place, and it does not count against the limit of locked memory. Registrations are stored, so
/// registering twice is detected. There is no virtual memory, and streams cannot be captured.
class TENSORPOOL_API HostBackend final : public Backend {
public:
    /// Makes a backend. Throws std::bad_alloc.
    HostBackend();
    /// Frees all memory. REQUIRES: no other thread uses the backend.
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

    std::string last_error() override;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
