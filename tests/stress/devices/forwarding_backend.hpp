#pragma once

#include <string>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::stress::devices {

/// Forwards every call to another backend. Derived classes override single functions with faults.
class ForwardingBackend : public Backend {
public:
    explicit ForwardingBackend(Backend& inner) noexcept : inner_(inner) {}

    DeviceType type() const noexcept override { return inner_.type(); }
    int device_count() noexcept override { return inner_.device_count(); }
    std::string device_name(int device) override { return inner_.device_name(device); }
    DeviceAbilities abilities(int device) noexcept override { return inner_.abilities(device); }
    DeviceStatus memory_info(int device, DeviceMemoryInfo& info) noexcept override {
        return inner_.memory_info(device, info);
    }
    DeviceStatus settle_memory(int device) noexcept override {
        return inner_.settle_memory(device);
    }
    DeviceStatus synchronize_device(int device) noexcept override {
        return inner_.synchronize_device(device);
    }
    DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                          void** memory) noexcept override {
        return inner_.allocate(device, bytes, kind, memory);
    }
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override {
        return inner_.deallocate(device, memory, bytes, kind);
    }
    DeviceStatus allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                void** memory) noexcept override {
        return inner_.allocate_async(device, bytes, stream, memory);
    }
    DeviceStatus deallocate_async(int device, void* memory, std::size_t bytes,
                                  StreamHandle stream) noexcept override {
        return inner_.deallocate_async(device, memory, bytes, stream);
    }
    DeviceStatus set_release_threshold(int device, std::size_t bytes) noexcept override {
        return inner_.set_release_threshold(device, bytes);
    }
    DeviceStatus trim_stream_ordered(int device, std::size_t& given_back) noexcept override {
        return inner_.trim_stream_ordered(device, given_back);
    }
    void* host_pointer(int device, void* memory) noexcept override {
        return inner_.host_pointer(device, memory);
    }
    DeviceStatus advise_memory(int device, void* memory, std::size_t bytes, MemoryAdvice advice,
                               Processor processor) noexcept override {
        return inner_.advise_memory(device, memory, bytes, advice, processor);
    }
    DeviceStatus prefetch_memory(int device, void* memory, std::size_t bytes, Processor processor,
                                 StreamHandle stream) noexcept override {
        return inner_.prefetch_memory(device, memory, bytes, processor, stream);
    }
    DeviceStatus reserve_addresses(int device, std::size_t bytes,
                                   void** address) noexcept override {
        return inner_.reserve_addresses(device, bytes, address);
    }
    DeviceStatus release_addresses(int device, void* address, std::size_t bytes) noexcept override {
        return inner_.release_addresses(device, address, bytes);
    }
    DeviceStatus create_memory(int device, std::size_t bytes,
                               MemoryHandle* memory) noexcept override {
        return inner_.create_memory(device, bytes, memory);
    }
    DeviceStatus create_exportable_memory(int device, std::size_t bytes,
                                          MemoryHandle* memory) noexcept override {
        return inner_.create_exportable_memory(device, bytes, memory);
    }
    DeviceStatus export_memory(int device, MemoryHandle memory, int* file) noexcept override {
        return inner_.export_memory(device, memory, file);
    }
    DeviceStatus import_memory(int device, int file, MemoryHandle* memory) noexcept override {
        return inner_.import_memory(device, file, memory);
    }
    DeviceStatus destroy_memory(int device, MemoryHandle memory) noexcept override {
        return inner_.destroy_memory(device, memory);
    }
    DeviceStatus map_memory(int device, void* address, std::size_t bytes,
                            MemoryHandle memory) noexcept override {
        return inner_.map_memory(device, address, bytes, memory);
    }
    DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept override {
        return inner_.unmap_memory(device, address, bytes);
    }
    DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept override {
        return inner_.allocate_pinned(device, bytes, memory);
    }
    DeviceStatus deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept override {
        return inner_.deallocate_pinned(device, memory, bytes);
    }
    DeviceStatus register_pinned(int device, void* memory, std::size_t bytes) noexcept override {
        return inner_.register_pinned(device, memory, bytes);
    }
    DeviceStatus unregister_pinned(int device, void* memory) noexcept override {
        return inner_.unregister_pinned(device, memory);
    }
    DeviceStatus create_stream(int device, StreamHandle* stream,
                               int priority = 0) noexcept override {
        return inner_.create_stream(device, stream, priority);
    }
    DeviceStatus stream_priorities(int device, StreamPriorities& priorities) noexcept override {
        return inner_.stream_priorities(device, priorities);
    }
    DeviceStatus destroy_stream(int device, StreamHandle stream) noexcept override {
        return inner_.destroy_stream(device, stream);
    }
    DeviceStatus synchronize_stream(int device, StreamHandle stream) noexcept override {
        return inner_.synchronize_stream(device, stream);
    }
    DeviceStatus query_stream(int device, StreamHandle stream) noexcept override {
        return inner_.query_stream(device, stream);
    }
    DeviceStatus wait_event(int device, StreamHandle stream, EventHandle event) noexcept override {
        return inner_.wait_event(device, stream, event);
    }
    DeviceStatus launch_host_function(int device, StreamHandle stream,
                                      void (*function)(void* argument),
                                      void* argument) noexcept override {
        return inner_.launch_host_function(device, stream, function, argument);
    }
    DeviceStatus create_event(int device, EventFlags flags, EventHandle* event) noexcept override {
        return inner_.create_event(device, flags, event);
    }
    DeviceStatus destroy_event(int device, EventHandle event) noexcept override {
        return inner_.destroy_event(device, event);
    }
    DeviceStatus record_event(int device, EventHandle event,
                              StreamHandle stream) noexcept override {
        return inner_.record_event(device, event, stream);
    }
    DeviceStatus query_event(int device, EventHandle event) noexcept override {
        return inner_.query_event(device, event);
    }
    DeviceStatus synchronize_event(int device, EventHandle event) noexcept override {
        return inner_.synchronize_event(device, event);
    }
    DeviceStatus elapsed_ms(int device, EventHandle from, EventHandle to,
                            float* ms) noexcept override {
        return inner_.elapsed_ms(device, from, to, ms);
    }
    DeviceStatus copy(int device, CopyKind kind, void* to, const void* from,
                      std::size_t bytes) noexcept override {
        return inner_.copy(device, kind, to, from, bytes);
    }
    DeviceStatus copy_async(int device, CopyKind kind, void* to, const void* from,
                            std::size_t bytes, StreamHandle stream) noexcept override {
        return inner_.copy_async(device, kind, to, from, bytes, stream);
    }
    DeviceStatus fill(int device, void* memory, std::uint8_t byte,
                      std::size_t bytes) noexcept override {
        return inner_.fill(device, memory, byte, bytes);
    }
    DeviceStatus fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                            StreamHandle stream) noexcept override {
        return inner_.fill_async(device, memory, byte, bytes, stream);
    }
    bool can_access_peer(int device, int peer) noexcept override {
        return inner_.can_access_peer(device, peer);
    }
    DeviceStatus enable_peer_access(int device, int peer) noexcept override {
        return inner_.enable_peer_access(device, peer);
    }
    DeviceStatus copy_peer_async(int to_device, void* to, int from_device, const void* from,
                                 std::size_t bytes, StreamHandle stream) noexcept override {
        return inner_.copy_peer_async(to_device, to, from_device, from, bytes, stream);
    }
    DeviceStatus begin_capture(int device, StreamHandle stream) noexcept override {
        return inner_.begin_capture(device, stream);
    }
    DeviceStatus end_capture(int device, StreamHandle stream,
                             GraphHandle* graph) noexcept override {
        return inner_.end_capture(device, stream, graph);
    }
    const std::atomic<unsigned>& captures_under_way() const noexcept override {
        return inner_.captures_under_way();
    }
    DeviceStatus capture_state(int device, StreamHandle stream,
                               CaptureState& state) noexcept override {
        return inner_.capture_state(device, stream, state);
    }
    DeviceStatus launch_graph(int device, GraphHandle graph,
                              StreamHandle stream) noexcept override {
        return inner_.launch_graph(device, graph, stream);
    }
    DeviceStatus destroy_graph(int device, GraphHandle graph) noexcept override {
        return inner_.destroy_graph(device, graph);
    }
    void note_block(const BlockNote& note) noexcept override { inner_.note_block(note); }
    std::string last_error() override { return inner_.last_error(); }

protected:
    Backend& inner() const noexcept { return inner_; }

private:
    Backend& inner_;
};

}  // namespace tensorpool::stress::devices
