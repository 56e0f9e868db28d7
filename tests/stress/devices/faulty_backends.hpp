#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "stress/devices/forwarding_backend.hpp"

// Backends that change an allocator's calls to its device, as if the allocator had made wrong
// calls.

namespace tensorpool::stress::devices {

/// Frequent enough for a short run, and rare enough that much succeeds before.
inline constexpr unsigned calls_per_fault = 3;

/// Reports an event as recorded without recording it.
struct ForgetsEvents : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus record_event(int device, EventHandle event,
                              StreamHandle stream) noexcept override {
        if (++calls_ % calls_per_fault == 0) return DeviceStatus::ok;
        return inner().record_event(device, event, stream);
    }

private:
    unsigned calls_ = 0;
};

struct RecordsOnTheDefaultStream : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus record_event(int device, EventHandle event, StreamHandle) noexcept override {
        return inner().record_event(device, event, nullptr);
    }
};

struct ReportsEventsReached : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus query_event(int, EventHandle) noexcept override { return DeviceStatus::ok; }
};

/// Queries an event other than the given one.
struct QueriesTheWrongEvent : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus query_event(int device, EventHandle event) noexcept override {
        const EventHandle other = std::exchange(last_, event);
        return inner().query_event(device, other != nullptr ? other : event);
    }
    DeviceStatus destroy_event(int device, EventHandle event) noexcept override {
        if (event == last_) last_ = nullptr;
        return inner().destroy_event(device, event);
    }

private:
    EventHandle last_ = nullptr;
};

/// Returns one event for two uses.
struct SharesEvents : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus create_event(int device, EventFlags flags, EventHandle* event) noexcept override {
        if (last_ != nullptr) {
            *event = std::exchange(last_, nullptr);
            ++shared_[*event];
            return DeviceStatus::ok;
        }
        const DeviceStatus status = inner().create_event(device, flags, event);
        if (status == DeviceStatus::ok) last_ = *event;
        return status;
    }
    DeviceStatus destroy_event(int device, EventHandle event) noexcept override {
        const auto found = shared_.find(event);
        if (found != shared_.end()) {
            shared_.erase(found);
            return DeviceStatus::ok;
        }
        if (event == last_) last_ = nullptr;
        return inner().destroy_event(device, event);
    }

private:
    EventHandle last_ = nullptr;
    std::map<EventHandle, unsigned> shared_;
};

struct ReportsStreamsIdle : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus query_stream(int, StreamHandle) noexcept override { return DeviceStatus::ok; }
};

/// Queries the default stream instead of the given one.
struct QueriesTheDefaultStream : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus query_stream(int device, StreamHandle) noexcept override {
        return inner().query_stream(device, nullptr);
    }
};

struct DoesNotWaitForTheDevice : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus synchronize_device(int) noexcept override { return DeviceStatus::ok; }
};

/// Waits only for the default stream.
struct WaitsForOneStream : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus synchronize_device(int device) noexcept override {
        return inner().synchronize_stream(device, nullptr);
    }
};

struct DoesNotWaitForStreams : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus synchronize_stream(int, StreamHandle) noexcept override {
        return DeviceStatus::ok;
    }
};

/// Also unmaps the granule of a block in use.
struct UnmapsTooMuch : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus unmap_memory(int device, void* address, std::size_t bytes) noexcept override {
        if (last_ != nullptr) {
            const std::size_t granule = inner().abilities(device).granularity;
            const auto last = reinterpret_cast<std::uintptr_t>(std::exchange(last_, nullptr));
            void* const begin = reinterpret_cast<void*>(last / granule * granule);
            (void)inner().unmap_memory(device, begin, granule);
        }
        return inner().unmap_memory(device, address, bytes);
    }
    void note_block(const BlockNote& note) noexcept override {
        if (note.kind == BlockNote::Kind::allocated) last_ = note.address;
        if (note.kind == BlockNote::Kind::freed && note.address == last_) last_ = nullptr;
        inner().note_block(note);
    }

private:
    void* last_ = nullptr;
};

/// Releases an old slab although blocks in it may be in use.
struct ReleasesASlabInUse : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus allocate(int device, std::size_t bytes, StorageKind kind,
                          void** memory) noexcept override {
        if (last_ != nullptr && ++calls_ % calls_per_fault == 0) {
            (void)inner().deallocate(device, std::exchange(last_, nullptr), last_bytes_, kind);
        }
        const DeviceStatus status = inner().allocate(device, bytes, kind, memory);
        if (status == DeviceStatus::ok) {
            last_ = *memory;
            last_bytes_ = bytes;
        }
        return status;
    }
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override {
        if (memory == last_) last_ = nullptr;
        return inner().deallocate(device, memory, bytes, kind);
    }

private:
    unsigned calls_ = 0;
    void* last_ = nullptr;
    std::size_t last_bytes_ = 0;
};

struct ReleasesSlabsTwice : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus deallocate(int device, void* memory, std::size_t bytes,
                            StorageKind kind) noexcept override {
        (void)inner().deallocate(device, memory, bytes, kind);
        return inner().deallocate(device, memory, bytes, kind);
    }
};

struct SeesNoCapture : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus capture_state(int, StreamHandle, CaptureState& state) noexcept override {
        state = {};
        return DeviceStatus::ok;
    }
};

/// Reports all captures with one id, so that they share the memory of their graphs.
struct MixesCaptures : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus capture_state(int device, StreamHandle stream,
                               CaptureState& state) noexcept override {
        const DeviceStatus status = inner().capture_state(device, stream, state);
        if (state.capturing) state.id = 1;
        return status;
    }
};

struct WaitsInCapture : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus capture_state(int device, StreamHandle stream,
                               CaptureState& state) noexcept override {
        const DeviceStatus status = inner().capture_state(device, stream, state);
        if (state.capturing) (void)inner().synchronize_stream(device, stream);
        return status;
    }
};

/// Releases the last slab of pinned memory while a stream uses a block of it.
struct ReleasesPinnedInUse : ForwardingBackend {
    using ForwardingBackend::ForwardingBackend;
    DeviceStatus allocate_pinned(int device, std::size_t bytes, void** memory) noexcept override {
        const DeviceStatus status = inner().allocate_pinned(device, bytes, memory);
        last_ = status == DeviceStatus::ok ? *memory : nullptr;
        last_bytes_ = bytes;
        return status;
    }
    DeviceStatus deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept override {
        if (memory == last_) last_ = nullptr;
        return inner().deallocate_pinned(device, memory, bytes);
    }
    DeviceStatus record_event(int device, EventHandle event,
                              StreamHandle stream) noexcept override {
        if (last_ != nullptr) {
            (void)inner().deallocate_pinned(device, std::exchange(last_, nullptr), last_bytes_);
        }
        return inner().record_event(device, event, stream);
    }

private:
    void* last_ = nullptr;
    std::size_t last_bytes_ = 0;
};

}  // namespace tensorpool::stress::devices
