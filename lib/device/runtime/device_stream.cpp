#include <tensorpool/device/device_stream.hpp>

#include <tensorpool/device/runtime.hpp>
#include <tensorpool/device/runtimes.hpp>

#include <utility>

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

}  // namespace tensorpool
