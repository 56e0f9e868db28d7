#include <tensorpool/device/runtime.hpp>

#include <tensorpool/device/device_stream.hpp>

#include "device/runtime/runtime_core.hpp"

namespace tensorpool {
namespace {

/// The runtime's own stream, among the objects of the program.
struct OwnStream {
    DeviceStream stream;
};

}  // namespace

Runtime::Runtime(std::shared_ptr<Backend> backend, Device device, const RuntimeOptions& options)
    : core_(std::make_shared<device::RuntimeCore>(std::move(backend), device, options)),
      objects_(std::make_unique<device::ObjectTable>()) {}

Runtime::~Runtime() {
    if (core_->is_ours()) {
        // A lost device cannot be waited for, but then no work runs either.
        core_->backend().synchronize_device(core_->index());
        objects_->end();
    } else {
        (void)objects_.release();
    }
}

Device Runtime::device() const noexcept {
    return core_->device();
}

Backend& Runtime::backend() const noexcept {
    return core_->backend();
}

std::string Runtime::name() const {
    return core_->backend().device_name(core_->index());
}

DeviceAbilities Runtime::abilities() const noexcept {
    return core_->backend().abilities(core_->index());
}

DeviceMemoryInfo Runtime::memory_info() const {
    DeviceMemoryInfo info;
    core_->check(core_->backend().memory_info(core_->index(), info), "memory_info");
    return info;
}

StreamPriorities Runtime::stream_priorities() const {
    StreamPriorities priorities;
    core_->check(core_->backend().stream_priorities(core_->index(), priorities),
                 "stream_priorities");
    return priorities;
}

DeviceStream& Runtime::stream() {
    const auto make = [](Runtime& runtime) {
        const int priority = runtime.core_->stream_priority();
        return std::make_unique<OwnStream>(OwnStream{DeviceStream(runtime, priority)});
    };
    return object<OwnStream>(make).stream;
}

StreamHandle Runtime::current_stream() const noexcept {
    return core_->current_stream();
}

void Runtime::activate() const {
    device::check_known(*this);
    set_current_device(device());
}

void Runtime::synchronize_stream(StreamHandle stream) const {
    core_->synchronize_stream(stream);
}

void Runtime::synchronize_device() const {
    core_->check(core_->backend().synchronize_device(core_->index()), "synchronize_device");
}

DeviceAllocator& Runtime::allocator() const {
    return core_->allocator(MemoryKind::device);
}

CachingAllocator* Runtime::caching_allocator() const noexcept {
    return core_->caching_allocator();
}

DeviceAllocator& Runtime::pinned_allocator() const {
    return core_->allocator(MemoryKind::pinned);
}

DeviceAllocator& Runtime::host_allocator() const {
    return core_->allocator(MemoryKind::host);
}

DeviceAllocation Runtime::allocate(std::size_t bytes, std::optional<StreamHandle> stream) {
    return DeviceAllocation(*this, bytes, stream);
}

DeviceAllocation Runtime::allocate_pinned(std::size_t bytes, std::optional<StreamHandle> stream) {
    return DeviceAllocation(*this, bytes, stream, MemoryKind::pinned);
}

DeviceAllocation Runtime::allocate_host(std::size_t bytes, std::optional<StreamHandle> stream) {
    return DeviceAllocation(*this, bytes, stream, MemoryKind::host);
}

std::size_t Runtime::trim() noexcept {
    return core_->trim();
}

void Runtime::advise(void* memory, std::size_t bytes, MemoryAdvice advice,
                     Processor processor) const {
    core_->check(core_->backend().advise_memory(core_->index(), memory, bytes, advice, processor),
                 "advise_memory", bytes);
}

void Runtime::prefetch(void* memory, std::size_t bytes, Processor processor,
                       std::optional<StreamHandle> stream) const {
    core_->check(core_->backend().prefetch_memory(core_->index(), memory, bytes, processor,
                                                  core_->stream_or_current(stream)),
                 "prefetch_memory", bytes);
}

void Runtime::copy_host_to_device(void* to, const void* from, std::size_t bytes) const {
    core_->wait_and_copy(CopyKind::host_to_device, to, from, bytes, current_stream());
}
void Runtime::copy_host_to_device(void* to, const void* from, std::size_t bytes,
                                  StreamHandle stream) const {
    core_->copy(CopyKind::host_to_device, to, from, bytes, stream);
}
void Runtime::copy_device_to_host(void* to, const void* from, std::size_t bytes) const {
    core_->wait_and_copy(CopyKind::device_to_host, to, from, bytes, current_stream());
}
void Runtime::copy_device_to_host(void* to, const void* from, std::size_t bytes,
                                  StreamHandle stream) const {
    core_->copy(CopyKind::device_to_host, to, from, bytes, stream);
}
void Runtime::copy_device_to_device(void* to, const void* from, std::size_t bytes) const {
    core_->wait_and_copy(CopyKind::device_to_device, to, from, bytes, current_stream());
}
void Runtime::copy_device_to_device(void* to, const void* from, std::size_t bytes,
                                    StreamHandle stream) const {
    core_->copy(CopyKind::device_to_device, to, from, bytes, stream);
}
void Runtime::copy_host_to_host(void* to, const void* from, std::size_t bytes) const {
    core_->wait_and_copy(CopyKind::host_to_host, to, from, bytes, current_stream());
}
void Runtime::copy_host_to_host(void* to, const void* from, std::size_t bytes,
                                StreamHandle stream) const {
    core_->copy(CopyKind::host_to_host, to, from, bytes, stream);
}

void Runtime::fill(void* memory, std::uint8_t byte, std::size_t bytes) const {
    DeviceStatus status = DeviceStatus::ok;
    // A fill without a stream waits for the default stream itself.
    if (const StreamHandle stream = current_stream()) {
        status = core_->backend().synchronize_stream(core_->index(), stream);
    }
    if (status == DeviceStatus::ok) {
        status = core_->backend().fill(core_->index(), memory, byte, bytes);
    }
    core_->check(status, "fill", bytes);
}
void Runtime::fill(void* memory, std::uint8_t byte, std::size_t bytes, StreamHandle stream) const {
    device::fill({*core_, memory, MemoryKind::device, stream}, byte, bytes);
}

void* Runtime::find_object(const std::type_info& type) const noexcept {
    return objects_->find(type);
}

void* Runtime::make_object(const ObjectRecipe& recipe) {
    return objects_->make(*this, recipe);
}

DeviceStream::DeviceStream() : DeviceStream(runtime()) {}

DeviceStream::DeviceStream(Runtime& runtime, int priority)
    : core_(runtime.core_), stream_(core_->create_stream(priority)) {}

DeviceStream::~DeviceStream() {
    if (core_ != nullptr && core_->is_ours()) core_->destroy_stream(stream_);
}

DeviceStream::DeviceStream(DeviceStream&& other) noexcept
    : core_(std::move(other.core_)), stream_(std::exchange(other.stream_, nullptr)) {}

DeviceStream& DeviceStream::operator=(DeviceStream&& other) noexcept {
    DeviceStream moved(std::move(other));
    std::swap(core_, moved.core_);
    std::swap(stream_, moved.stream_);
    return *this;
}

Device DeviceStream::device() const noexcept {
    return core_->device();
}

void DeviceStream::synchronize() const {
    core_->synchronize_stream(stream_);
}

bool DeviceStream::query() const {
    return core_->is_done(core_->backend().query_stream(core_->index(), stream_), "query_stream");
}

void DeviceStream::wait(const DeviceEvent& event) const {
    if (&event.core_->backend() != &core_->backend()) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: a stream of " + to_string(device()) +
                              " cannot wait for an event of " + to_string(event.device()) +
                              "; expected devices of one backend; DeviceEvent::synchronize waits "
                              "for any");
    }
    core_->check(core_->backend().wait_event(core_->index(), stream_, event.event_), "wait_event");
}

void DeviceStream::launch(std::function<void()> function) const {
    core_->call_once(stream_, std::move(function), "launch");
}

DeviceEvent::DeviceEvent(EventFlags flags) : DeviceEvent(runtime(), flags) {}

DeviceEvent::DeviceEvent(Runtime& runtime, EventFlags flags) : core_(runtime.core_), flags_(flags) {
    core_->check(core_->backend().create_event(core_->index(), flags, &event_), "create_event");
}

DeviceEvent::~DeviceEvent() {
    if (core_ != nullptr && core_->is_ours())
        core_->backend().destroy_event(core_->index(), event_);
}

DeviceEvent::DeviceEvent(DeviceEvent&& other) noexcept
    : core_(std::move(other.core_)),
      event_(std::exchange(other.event_, nullptr)),
      flags_(other.flags_) {}

DeviceEvent& DeviceEvent::operator=(DeviceEvent&& other) noexcept {
    DeviceEvent moved(std::move(other));
    std::swap(core_, moved.core_);
    std::swap(event_, moved.event_);
    std::swap(flags_, moved.flags_);
    return *this;
}

Device DeviceEvent::device() const noexcept {
    return core_->device();
}

void DeviceEvent::record(std::optional<StreamHandle> stream) {
    core_->check(
        core_->backend().record_event(core_->index(), event_, core_->stream_or_current(stream)),
        "record_event");
}

bool DeviceEvent::query() const {
    return core_->is_done(core_->backend().query_event(core_->index(), event_), "query_event");
}

void DeviceEvent::synchronize() const {
    core_->check(core_->backend().synchronize_event(core_->index(), event_), "synchronize_event");
}

void DeviceEvent::make_wait(StreamHandle stream) const {
    core_->check(core_->backend().wait_event(core_->index(), stream, event_), "wait_event");
}

float DeviceEvent::elapsed_ms_since(const DeviceEvent& start) const {
    if (&start.core_->backend() != &core_->backend()) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "tensorpool: elapsed_ms_since on " + to_string(device()) +
                              ": the other event belongs to " + to_string(start.device()) +
                              " of another backend; expected two events of one backend");
    }
    float ms = 0;
    core_->check(core_->backend().elapsed_ms(core_->index(), start.event_, event_, &ms),
                 "elapsed_ms");
    return ms;
}

}  // namespace tensorpool
