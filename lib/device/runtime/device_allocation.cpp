#include <tensorpool/device/device_allocation.hpp>

#include <cstring>

#include "base/alignment.hpp"
#include "device/runtime/runtime_core.hpp"

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

void check_range(const DeviceAllocation& memory, const char* call, std::size_t offset,
                 std::size_t bytes) {
    if (offset <= memory.size() && bytes <= memory.size() - offset) [[likely]]
        return;
    throw std::out_of_range(std::string("tensorpool: ") + call + ": " + std::to_string(bytes) +
                            " bytes at offset " + std::to_string(offset) + " exceed the " +
                            std::to_string(memory.size()) + " bytes on " +
                            to_string(memory.device()));
}

std::size_t bytes_by_type(const MemoryShape& shape) {
    const std::uint64_t bytes = shape.type.block_bytes();
    if (shape.element_bytes != 0 &&
        (shape.type.block_elements() != 1 || shape.element_bytes != bytes)) {
        throw std::invalid_argument("tensorpool: a shape has elements of " +
                                    std::to_string(shape.element_bytes) + " bytes and of type " +
                                    to_string(shape.type) + ", expected 0 or the type's size");
    }
    return static_cast<std::size_t>(
        tensor_bytes(shape.type, std::span<const std::int64_t>(shape.extents)));
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

namespace tensorpool {

std::size_t bytes_of(const MemoryShape& shape) {
    if (shape.type != DataType{}) return device::bytes_by_type(shape);
    if (shape.element_bytes == 0) {
        throw std::invalid_argument(
            "tensorpool: a shape has elements of 0 bytes, expected 1 or more");
    }
    std::size_t bytes = shape.element_bytes;
    bool fits = true;
    for (const std::int64_t extent : shape.extents) {
        if (extent < 0) {
            throw std::invalid_argument("tensorpool: a shape has the extent " +
                                        std::to_string(extent) + ", expected 0 or more");
        }
        if (extent == 0) return 0;
        fits = fits && base::multiply(bytes, static_cast<std::size_t>(extent), bytes);
    }
    if (!fits) {
        throw std::invalid_argument(
            "tensorpool: a shape needs more bytes than a program can address");
    }
    return bytes;
}

void device::check_shape(const MemoryShape& shape, std::size_t bytes) {
    if (shape == MemoryShape{}) return;
    const std::size_t needed = bytes_of(shape);
    if (needed <= bytes) return;
    throw std::invalid_argument("tensorpool: a shape needs " + std::to_string(needed) +
                                " bytes, expected at most the " + std::to_string(bytes) +
                                " of the memory");
}

const char* to_string(MemoryKind kind) noexcept {
    return device::text_of({"device", "pinned", "host"}, kind);
}

DeviceAllocation::DeviceAllocation() noexcept = default;

DeviceAllocation::DeviceAllocation(std::size_t bytes, std::optional<StreamHandle> stream)
    : DeviceAllocation(runtime(), bytes, stream) {}

DeviceAllocation::DeviceAllocation(Runtime& runtime, std::size_t bytes,
                                   std::optional<StreamHandle> stream, MemoryKind kind)
    : core_(runtime.core_),
      stream_(core_->stream_or_current(stream)),
      data_(core_->allocator(kind).allocate(bytes, stream_)),
      bytes_(bytes),
      kind_(kind) {
    if (kind != MemoryKind::pinned || stream_ != nullptr) return;
    try {
        (void)stream_for_work();
    } catch (...) {
        reset();
        throw;
    }
}

DeviceAllocation::~DeviceAllocation() {
    reset();
}

DeviceAllocation::DeviceAllocation(DeviceAllocation&& other) noexcept {
    swap(other);
}

DeviceAllocation& DeviceAllocation::operator=(DeviceAllocation&& other) noexcept {
    DeviceAllocation moved(std::move(other));
    swap(moved);
    return *this;
}

void DeviceAllocation::swap(DeviceAllocation& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(stream_, other.stream_);
    std::swap(kind_, other.kind_);
    std::swap(shape_, other.shape_);
}

void DeviceAllocation::reset() noexcept {
    // The allocator was created before this memory was allocated, so this call does not create it.
    if (data_ != nullptr && core_->is_ours()) core_->allocator(kind_).deallocate(data_);
    data_ = nullptr;
    bytes_ = 0;
    shape_ = {};
    stream_ = nullptr;
    kind_ = MemoryKind::device;
    core_.reset();
}

Device DeviceAllocation::device() const noexcept {
    return core_ != nullptr ? core_->device() : Device{};
}

StreamHandle DeviceAllocation::stream() const noexcept {
    if (stream_ == nullptr || data_ == nullptr || !core_->is_ours()) return stream_;
    return core_->allocator(kind_).is_used_on(data_, stream_) ? stream_ : nullptr;
}

// A pinned block allocated with nullptr belongs to no stream until record_use names one.
StreamHandle DeviceAllocation::stream_for_work() const {
    const StreamHandle now = stream();
    if (kind_ == MemoryKind::pinned && now == nullptr && data_ != nullptr) {
        core_->allocator(kind_).record_use(data_, nullptr);
    }
    return now;
}

void* DeviceAllocation::host_pointer() const noexcept {
    if (data_ == nullptr || core_->is_host_memory(kind_)) return data_;
    return core_->backend().host_pointer(core_->index(), data_);
}

void DeviceAllocation::set(std::size_t offset, std::span<const std::byte> bytes) {
    device::check_range(*this, "set", offset, bytes.size());
    if (bytes.empty()) return;
    const CopyKind kind =
        core_->is_host_memory(kind_) ? CopyKind::host_to_host : CopyKind::host_to_device;
    core_->wait_and_copy(kind, static_cast<std::byte*>(data_) + offset, bytes.data(), bytes.size(),
                         stream());
}

void DeviceAllocation::get(std::size_t offset, std::span<std::byte> bytes) const {
    device::check_range(*this, "get", offset, bytes.size());
    if (bytes.empty()) return;
    const CopyKind kind =
        core_->is_host_memory(kind_) ? CopyKind::host_to_host : CopyKind::device_to_host;
    core_->wait_and_copy(kind, bytes.data(), static_cast<std::byte*>(data_) + offset, bytes.size(),
                         stream());
}

void DeviceAllocation::fill(std::uint8_t byte) {
    if (bytes_ != 0) device::fill({*core_, data_, kind_, stream_for_work()}, byte, bytes_);
}

void DeviceAllocation::copy_from(const DeviceAllocation& other) {
    if (other.bytes_ != bytes_) {
        throw std::invalid_argument("tensorpool: copy_from: the source has " +
                                    std::to_string(other.bytes_) + " bytes, expected the " +
                                    std::to_string(bytes_) + " of the destination");
    }
    if (bytes_ == 0 || this == &other) return;
    device::copy_between({*core_, data_, kind_, stream_for_work()},
                         {*other.core_, other.data_, other.kind_, other.stream_for_work()}, bytes_);
}

void DeviceAllocation::record_use(StreamHandle stream) {
    if (data_ != nullptr) core_->allocator(kind_).record_use(data_, stream);
}

void DeviceAllocation::set_shape(MemoryShape shape) {
    device::check_shape(shape, bytes_);
    shape_ = std::move(shape);
}

}  // namespace tensorpool
