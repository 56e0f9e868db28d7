#include <tensorpool/device/host_backend.hpp>

#include <cstring>
#include <string>
#include <utility>

#include "device/call_errors.hpp"
#include "device/host/handle_table.hpp"
#include "device/host/host_event.hpp"
#include "device/host/host_memory.hpp"
#include "device/host/host_streams.hpp"
#include "device/host/host_virtual_memory.hpp"
#include "platform/platform.hpp"

namespace tensorpool {

using device::HostEvent;
using device::HostMark;
using device::HostStream;

namespace {

constexpr device::HostMemory::Kind pinned_kind = 0;

device::HostMemory::Kind number_of(StorageKind kind) {
    if (kind <= StorageKind::managed) return static_cast<device::HostMemory::Kind>(kind);
    throw DeviceError(DeviceStatus::invalid_argument,
                      "storage kind " + std::to_string(static_cast<int>(kind)) + " is none");
}

[[noreturn]] void refuse(const std::string& text) {
    throw DeviceError(DeviceStatus::invalid_argument, text);
}

void check_range(const char* what, const void* memory, std::size_t bytes) {
    if (memory != nullptr || bytes == 0) return;
    refuse(std::string(what) + " nullptr, expected " + std::to_string(bytes) + " B of memory");
}

void check_copy(CopyKind kind, const void* to, const void* from, std::size_t bytes) {
    if (kind > CopyKind::device_to_device) {
        refuse("copy kind " + std::to_string(static_cast<int>(kind)) + " is none");
    }
    check_range("to", to, bytes);
    check_range("from", from, bytes);
}

}  // namespace

// Streams stand last: their work, which uses the rest, is done before anything goes.
struct HostBackend::State {
    State() : name(platform::processor_name().text) {
        if (name.empty()) name = "CPU";
    }

    /// What `body` returns or throws, for device 0.
    template <class Body>
    DeviceStatus call(const char* function, int device, Body body) noexcept {
        return errors.guard(function, [&] {
            if (device != 0) {
                refuse("device " + std::to_string(device) + ", expected 0, the only one");
            }
            return body();
        });
    }

    HostEvent& event_of(EventHandle handle) const {
        if (HostEvent* const event = events.find(handle)) return *event;
        refuse("event " + device::to_text(handle) +
               ": expected one that was created and not destroyed");
    }

    void check_virtual_memory() const {
        if (virtual_memory.is_there()) return;
        throw DeviceError(DeviceStatus::not_supported, "this system cannot move memory");
    }

    const std::size_t total_bytes = platform::total_memory();
    std::string name;
    device::CallErrors errors;
    device::HostMemory memory;
    device::HostMemory pinned;
    device::HostVirtualMemory virtual_memory;
    device::HandleTable<HostEvent, EventHandle> events;
    device::HostStreams streams;
};

HostBackend::HostBackend() : state_(std::make_unique<State>()) {}
HostBackend::~HostBackend() = default;

// Devices ----------------------------------------------------------------------------------------

DeviceType HostBackend::type() const noexcept {
    return DeviceType::cpu;
}

int HostBackend::device_count() noexcept {
    return 1;
}

std::string HostBackend::device_name(int device) {
    return device == 0 ? state_->name : std::string();
}

DeviceAbilities HostBackend::abilities(int device) noexcept {
    if (device != 0) return {};
    const bool virtual_memory = state_->virtual_memory.is_there();
    return {.unified_memory = true,
            .shared_storage = true,
            .managed_storage = true,
            .virtual_memory = virtual_memory,
            .stream_ordered_allocation = true,
            .largest_allocation = state_->total_bytes,
            .granularity = virtual_memory ? device::HostVirtualMemory::granularity : 0};
}

DeviceStatus HostBackend::memory_info(int device, DeviceMemoryInfo& info) noexcept {
    return state_->call("memory_info", device, [&] {
        const std::size_t total = state_->total_bytes;
        info = {std::min(platform::available_memory(), total), total};
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::settle_memory(int device) noexcept {
    return state_->call("settle_memory", device, [] { return DeviceStatus::ok; });
}

DeviceStatus HostBackend::synchronize_device(int device) noexcept {
    return state_->call("synchronize_device", device, [&] {
        state_->streams.wait_for_all();
        return DeviceStatus::ok;
    });
}

// Memory -----------------------------------------------------------------------------------------

DeviceStatus HostBackend::allocate(int device, std::size_t bytes, StorageKind kind,
                                   void** memory) noexcept {
    return state_->call("allocate", device, [&] {
        *memory = state_->memory.allocate(bytes, number_of(kind));
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::deallocate(int device, void* memory, std::size_t bytes,
                                     StorageKind kind) noexcept {
    return state_->call("deallocate", device, [&] {
        state_->memory.deallocate(memory, bytes, number_of(kind));
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                         void** memory) noexcept {
    return state_->call("allocate_async", device, [&] {
        state_->streams.find(stream);
        *memory = state_->memory.allocate(bytes, number_of(StorageKind::private_storage));
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::deallocate_async(int device, void* memory, std::size_t bytes,
                                           StreamHandle stream) noexcept {
    return state_->call("deallocate_async", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        auto leaving =
            state_->memory.begin_leave(memory, bytes, number_of(StorageKind::private_storage));
        try {
            worker.give_or_do([memory, bytes] { device::HostMemory::end(memory, bytes); });
        } catch (...) {
            state_->memory.resume(std::move(leaving));
            throw;
        }
        return DeviceStatus::ok;
    });
}

void* HostBackend::host_pointer(int device, void* memory) noexcept {
    return device == 0 ? memory : nullptr;
}

// Virtual memory ---------------------------------------------------------------------------------

DeviceStatus HostBackend::reserve_addresses(int device, std::size_t bytes,
                                            void** address) noexcept {
    return state_->call("reserve_addresses", device, [&] {
        state_->check_virtual_memory();
        *address = state_->virtual_memory.reserve(bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::release_addresses(int device, void* address, std::size_t bytes) noexcept {
    return state_->call("release_addresses", device, [&] {
        state_->check_virtual_memory();
        state_->virtual_memory.release(address, bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::create_memory(int device, std::size_t bytes,
                                        MemoryHandle* memory) noexcept {
    return state_->call("create_memory", device, [&] {
        state_->check_virtual_memory();
        *memory = state_->virtual_memory.create(bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::destroy_memory(int device, MemoryHandle memory) noexcept {
    return state_->call("destroy_memory", device, [&] {
        state_->check_virtual_memory();
        state_->virtual_memory.destroy(memory);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::map_memory(int device, void* address, std::size_t bytes,
                                     MemoryHandle memory) noexcept {
    return state_->call("map_memory", device, [&] {
        state_->check_virtual_memory();
        state_->virtual_memory.map(address, bytes, memory);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::unmap_memory(int device, void* address, std::size_t bytes) noexcept {
    return state_->call("unmap_memory", device, [&] {
        state_->check_virtual_memory();
        state_->virtual_memory.unmap(address, bytes);
        return DeviceStatus::ok;
    });
}

// Pinned host memory -----------------------------------------------------------------------------

DeviceStatus HostBackend::allocate_pinned(int device, std::size_t bytes, void** memory) noexcept {
    return state_->call("allocate_pinned", device, [&] {
        *memory = state_->pinned.allocate(bytes, pinned_kind);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call("deallocate_pinned", device, [&] {
        state_->pinned.deallocate(memory, bytes, pinned_kind);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::register_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call("register_pinned", device, [&] {
        state_->pinned.add_foreign(memory, bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::unregister_pinned(int device, void* memory) noexcept {
    return state_->call("unregister_pinned", device, [&] {
        state_->pinned.remove_foreign(memory);
        return DeviceStatus::ok;
    });
}

// Streams ----------------------------------------------------------------------------------------

DeviceStatus HostBackend::create_stream(int device, StreamHandle* stream) noexcept {
    return state_->call("create_stream", device, [&] {
        *stream = state_->streams.create();
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return state_->call("destroy_stream", device, [&] {
        state_->streams.destroy(stream);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return state_->call("synchronize_stream", device, [&] {
        state_->streams.find(stream).wait();
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::query_stream(int device, StreamHandle stream) noexcept {
    return state_->call("query_stream", device, [&] {
        return state_->streams.find(stream).is_idle() ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus HostBackend::wait_event(int device, StreamHandle stream, EventHandle event) noexcept {
    return state_->call("wait_event", device, [&] {
        HostStream& waiter = state_->streams.find(stream);
        const HostMark mark = state_->event_of(event).mark();
        if (mark.stream != &waiter && !mark.is_reached()) waiter.give([mark] { mark.wait(); });
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::launch_host_function(int device, StreamHandle stream,
                                               void (*function)(void*), void* argument) noexcept {
    return state_->call("launch_host_function", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        if (function == nullptr) refuse("function nullptr, expected one");
        worker.give([function, argument] { function(argument); });
        return DeviceStatus::ok;
    });
}

// Events -----------------------------------------------------------------------------------------

DeviceStatus HostBackend::create_event(int device, EventTiming timing,
                                       EventHandle* event) noexcept {
    return state_->call("create_event", device, [&] {
        *event = state_->events.add([timing](HostEvent& made) { made.begin_life(timing); });
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::destroy_event(int device, EventHandle event) noexcept {
    return state_->call("destroy_event", device, [&] {
        HostEvent& ended = state_->event_of(event);
        if (!state_->events.end(event)) refuse("event destroyed by two threads at once");
        ended.end_life();
        state_->events.recycle(event);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::record_event(int device, EventHandle event,
                                       StreamHandle stream) noexcept {
    return state_->call("record_event", device, [&] {
        HostStream& recorded = state_->streams.find(stream);
        state_->event_of(event).record(recorded);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::query_event(int device, EventHandle event) noexcept {
    return state_->call("query_event", device, [&] {
        const bool reached = state_->event_of(event).mark().is_reached();
        return reached ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus HostBackend::synchronize_event(int device, EventHandle event) noexcept {
    return state_->call("synchronize_event", device, [&] {
        state_->event_of(event).mark().wait();
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                     float* ms) noexcept {
    return state_->call("elapsed_ms", device, [&] {
        const HostEvent::Time begin = state_->event_of(from).time();
        const HostEvent::Time end = state_->event_of(to).time();
        if (begin.timing == EventTiming::off || end.timing == EventTiming::off) {
            refuse("an event without timing, expected two that were created with it");
        }
        if (begin.mark.stream == nullptr || end.mark.stream == nullptr) {
            refuse("an event that was never recorded, expected two that were");
        }
        if (!begin.mark.is_reached() || !end.mark.is_reached()) return DeviceStatus::not_ready;
        *ms =
            static_cast<float>((static_cast<double>(end.ns) - static_cast<double>(begin.ns)) / 1e6);
        return DeviceStatus::ok;
    });
}

// Copies and fills -------------------------------------------------------------------------------

DeviceStatus HostBackend::copy(int device, CopyKind kind, void* to, const void* from,
                               std::size_t bytes) noexcept {
    return state_->call("copy", device, [&] {
        check_copy(kind, to, from, bytes);
        if (bytes != 0) std::memcpy(to, from, bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::copy_async(int device, CopyKind kind, void* to, const void* from,
                                     std::size_t bytes, StreamHandle stream) noexcept {
    return state_->call("copy_async", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        check_copy(kind, to, from, bytes);
        if (bytes != 0) worker.give([to, from, bytes] { std::memcpy(to, from, bytes); });
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::fill(int device, void* memory, std::uint8_t byte,
                               std::size_t bytes) noexcept {
    return state_->call("fill", device, [&] {
        check_range("memory", memory, bytes);
        if (bytes != 0) std::memset(memory, byte, bytes);
        return DeviceStatus::ok;
    });
}

DeviceStatus HostBackend::fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                     StreamHandle stream) noexcept {
    return state_->call("fill_async", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        check_range("memory", memory, bytes);
        if (bytes != 0) worker.give([memory, byte, bytes] { std::memset(memory, byte, bytes); });
        return DeviceStatus::ok;
    });
}

// The rest ---------------------------------------------------------------------------------------

std::string HostBackend::last_error() {
    return state_->errors.last();
}

}  // namespace tensorpool
