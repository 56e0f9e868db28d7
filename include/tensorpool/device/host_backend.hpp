#pragma once

/// @file
/// The CPU as a device.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// One device of type cpu, whose memory is the host's.
///
/// A stream has a worker thread of its own, which starts with the first work that is given to it
/// and ends with the stream; the default stream's ends with the backend. Events take no thread: one
/// recorded where no work is under way is reached at once. What is asked for without a stream
/// is done at once on the calling thread. A stream destroyed with work under way still does it, and
/// the destructor waits for that.
///
/// Memory is the system's pages: all kinds of storage are the same, `host_pointer` is the address,
/// and 1 byte takes a page: allocators above ask for slabs. Pinned memory is ordinary memory
/// aligned to a page: nobody but a processor copies it, so none of it needs to stay where it is,
/// and it counts against no limit of locked memory. What is registered is remembered, so that doing
/// it twice is found out. Virtual memory is there on Linux 5.7 and later; memory can be mapped at
/// one place at a time.
/// A graph's work is done piece by piece, in the order in which it was given, whatever streams it
/// was captured in. In a stream that is captured, stream-ordered allocation is in_capture. A
/// capture is over when it is ended, even where that is refused because not all streams joined
/// again.
class TENSORPOOL_API HostBackend final : public Backend {
public:
    /// Throws std::bad_alloc. Starts no thread.
    HostBackend();
    /// Waits for all work. REQUIRES: no other thread uses it.
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
    void* host_pointer(int device, void* memory) noexcept override;

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

    DeviceStatus create_stream(int device, StreamHandle* stream) noexcept override;
    DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus query_stream(int device, StreamHandle stream) noexcept override;
    DeviceStatus wait_event(int device, StreamHandle stream, EventHandle event) noexcept override;
    DeviceStatus launch_host_function(int device, StreamHandle stream, void (*function)(void*),
                                      void* argument) noexcept override;

    DeviceStatus create_event(int device, EventTiming timing, EventHandle* event) noexcept override;
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
