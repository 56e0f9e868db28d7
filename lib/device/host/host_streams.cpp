#include "device/host/host_streams.hpp"

#include <algorithm>

#include <tensorpool/device/device_status.hpp>

#include "device/call_errors.hpp"

namespace tensorpool::device {
namespace {

[[noreturn]] void refuse(StreamHandle handle, const char* or_else = "") {
    throw DeviceError(DeviceStatus::invalid_argument, "stream " + to_text(handle) + ": expected " +
                                                          or_else +
                                                          "one that was created and not destroyed");
}

}  // namespace

HostStreams::~HostStreams() {
    default_stream_.end_lifetime();
    streams_.for_each([](HostStream& stream) { stream.end_lifetime(); });
}

StreamHandle HostStreams::create() {
    end_leaving();
    return streams_.add([](HostStream&) {});
}

HostStream& HostStreams::find(StreamHandle handle) {
    if (handle == nullptr) return default_stream_;
    if (HostStream* const stream = streams_.find(handle)) return *stream;
    refuse(handle, "nullptr, the default stream, or ");
}

void HostStreams::destroy(StreamHandle handle) {
    HostStream* const stream = streams_.find(handle);
    if (stream == nullptr) refuse(handle);
    {
        const std::lock_guard guard(mutex_);
        leaving_.reserve(leaving_.size() + 1);
        if (!streams_.end(handle)) refuse(handle);
        leaving_.push_back({handle, stream});
    }
    end_leaving();
}

void HostStreams::end_leaving() noexcept {
    while (const std::optional<Leaving> idle = take_idle()) {
        idle->stream->end_lifetime();
        streams_.recycle(idle->handle);
    }
}

std::optional<HostStreams::Leaving> HostStreams::take_idle() noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(leaving_.begin(), leaving_.end(),
                                    [](const Leaving& one) { return one.stream->is_idle(); });
    if (found == leaving_.end()) return std::nullopt;
    const Leaving idle = *found;
    leaving_.erase(found);
    return idle;
}

void HostStreams::wait_for_all() {
    default_stream_.wait();
    streams_.for_each([](HostStream& stream) { stream.wait(); });
}

}  // namespace tensorpool::device
