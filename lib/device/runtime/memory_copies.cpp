#include "device/runtime/runtime_core.hpp"

#include <algorithm>
#include <cstring>

namespace tensorpool::device {
namespace {

CopyKind kind_of(const CopyEnd& to, const CopyEnd& from) {
    if (from.on_host()) return to.on_host() ? CopyKind::host_to_host : CopyKind::host_to_device;
    return to.on_host() ? CopyKind::device_to_host : CopyKind::device_to_device;
}

bool one_backend(const CopyEnd& to, const CopyEnd& from) {
    return &to.core.backend() == &from.core.backend();
}

bool one_device(const CopyEnd& to, const CopyEnd& from) {
    return one_backend(to, from) && to.core.index() == from.core.index();
}

/// Owns an event for one ordering of streams. Streams may wait for it after it is destroyed.
class PassingEvent {
public:
    explicit PassingEvent(RuntimeCore& core) : core_(core) {
        core.check(core.backend().create_event(core.index(), EventFlags::none, &event_),
                   "create_event");
    }
    ~PassingEvent() { core_.backend().destroy_event(core_.index(), event_); }
    PassingEvent(const PassingEvent&) = delete;
    PassingEvent& operator=(const PassingEvent&) = delete;

    void record(StreamHandle stream) {
        core_.check(core_.backend().record_event(core_.index(), event_, stream), "record_event");
    }
    void synchronize() {
        core_.check(core_.backend().synchronize_event(core_.index(), event_), "synchronize_event");
    }
    EventHandle handle() const noexcept { return event_; }

private:
    RuntimeCore& core_;
    EventHandle event_ = nullptr;
};

/// Orders later work of the stream of `later` after the work submitted to the stream of `earlier`
/// so far. REQUIRES: both belong to one backend.
void order(const CopyEnd& earlier, const CopyEnd& later) {
    if (one_device(earlier, later) && earlier.stream == later.stream) return;
    PassingEvent event(earlier.core);
    event.record(earlier.stream);
    RuntimeCore& core = later.core;
    core.check(core.backend().wait_event(core.index(), later.stream, event.handle()), "wait_event");
}

/// Gives the device of `to` access to that of `from`. Returns false if it cannot have access, or
/// has it to as many devices as it can.
bool become_peers(const CopyEnd& to, const CopyEnd& from) {
    Backend& backend = to.core.backend();
    if (!one_backend(to, from)) return false;
    if (!backend.can_access_peer(to.core.index(), from.core.index())) return false;
    const DeviceStatus status = backend.enable_peer_access(to.core.index(), from.core.index());
    if (status == DeviceStatus::not_supported) return false;
    to.core.check(status, "enable_peer_access");
    return true;
}

void copy_peer(const CopyEnd& to, const CopyEnd& from, std::size_t bytes) {
    order(from, to);
    to.core.check(to.core.backend().copy_peer_async(to.core.index(), to.memory, from.core.index(),
                                                    from.memory, bytes, to.stream),
                  "copy from a peer", bytes);
    order(to, from);
}

/// Whether the device reads the source when the copy is submitted, before earlier work may have
/// written it. The launches of a graph read it later.
bool takes_source_at_once(const CopyEnd& to, const CopyEnd& from) {
    if (to.on_host() || from.kind != MemoryKind::host) return false;
    return !to.core.is_captured(to.stream, "copy") && !from.core.is_captured(from.stream, "copy");
}

/// A copy made by the device of one end; the other end is host memory or on the same device.
void copy_alone(const CopyEnd& to, const CopyEnd& from, std::size_t bytes) {
    const CopyEnd& worker = to.on_host() && !from.on_host() ? from : to;
    const CopyEnd& other = &worker == &to ? from : to;
    if (one_backend(to, from)) {
        if (takes_source_at_once(to, from)) from.core.synchronize_stream(from.stream);
        order(other, worker);
        worker.core.copy(kind_of(to, from), to.memory, from.memory, bytes, worker.stream);
        order(worker, other);
        return;
    }
    // Streams of one backend cannot wait for those of another, so the calling thread waits.
    other.core.synchronize_stream(other.stream);
    worker.core.wait_and_copy(kind_of(to, from), to.memory, from.memory, bytes, worker.stream);
}

/// A pinned buffer, with an event for the arrival of its content.
class StagingBuffer {
public:
    StagingBuffer(RuntimeCore& core, std::size_t bytes)
        : core_(core),
          allocator_(core.allocator(MemoryKind::pinned)),
          arrived_(core),
          memory_(allocator_.allocate(bytes)) {}
    ~StagingBuffer() {
        core_.backend().synchronize_event(core_.index(), arrived_.handle());
        allocator_.deallocate(memory_);
    }

    void pass(const CopyEnd& to, const CopyEnd& from, std::size_t bytes) {
        arrived_.synchronize();
        from.core.copy(CopyKind::device_to_host, memory_, from.memory, bytes, from.stream);
        from.core.synchronize_stream(from.stream);
        to.core.copy(CopyKind::host_to_device, to.memory, memory_, bytes, to.stream);
        arrived_.record(to.stream);
    }

private:
    RuntimeCore& core_;
    DeviceAllocator& allocator_;
    PassingEvent arrived_;
    void* memory_;  // last member: if its allocation throws, nothing else leaks
};

/// Uses two buffers, so that one piece is read while the piece before it is written.
void copy_in_pieces(const CopyEnd& to, const CopyEnd& from, std::size_t bytes) {
    const std::size_t piece = std::min(bytes, to.core.staging_bytes());
    StagingBuffer one(to.core, piece);
    std::optional<StagingBuffer> other;
    if (piece < bytes) other.emplace(to.core, piece);
    bool use_other = false;
    for (std::size_t offset = 0; offset < bytes; offset += piece) {
        StagingBuffer& buffer = use_other ? *other : one;
        buffer.pass(to.at(offset), from.at(offset), std::min(piece, bytes - offset));
        use_other = !use_other;
    }
    to.core.synchronize_stream(to.stream);
}

}  // namespace

void copy_between(const CopyEnd& to, const CopyEnd& from, std::size_t bytes) {
    if (one_device(to, from) || to.on_host() || from.on_host()) return copy_alone(to, from, bytes);
    if (become_peers(to, from)) return copy_peer(to, from, bytes);
    copy_in_pieces(to, from, bytes);
}

void fill(const CopyEnd& end, std::uint8_t byte, std::size_t bytes) {
    RuntimeCore& core = end.core;
    // Devices can fill only their own memory.
    if (end.on_host() && core.device().type != DeviceType::cpu) {
        const auto set = [memory = end.memory, byte, bytes] { std::memset(memory, byte, bytes); };
        return core.call_once(end.stream, set, "fill of host memory");
    }
    core.check(core.backend().fill_async(core.index(), end.memory, byte, bytes, end.stream),
               "fill in a stream", bytes);
}

}  // namespace tensorpool::device
