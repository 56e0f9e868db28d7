#include <tensorpool/device/device_stream.hpp>

#include <utility>

#include <tensorpool/device/device_event.hpp>
#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtimes.hpp>

#include "device/runtime/runtime_core.hpp"

namespace tensorpool {

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
