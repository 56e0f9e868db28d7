#include "device/host/host_event.hpp"

#include <utility>

#include "platform/platform.hpp"

namespace tensorpool::device {

void HostEvent::begin_lifetime(bool has_timing) noexcept {
    const std::lock_guard guard(mutex_);
    has_timing_ = has_timing;
    mark_ = {};
}

void HostEvent::end_lifetime() noexcept {
    const std::lock_guard guard(mutex_);
    ++records_;
    mark_ = {};
}

void HostEvent::record(HostStream& stream) {
    const std::lock_guard guard(mutex_);
    if (!has_timing_) {
        mark_ = {&stream, stream.given(), nullptr};
        return;
    }
    const std::uint64_t given = stream.given();
    if (stream.reached(given)) {
        mark_ = {&stream, given, nullptr};
        time_ns_ = platform::monotonic_clock_ns();
        ++records_;
        return;
    }
    const std::uint64_t record = records_ + 1;
    // The work may run before `give` returns, but `stamp` waits for this lock.
    mark_ = {&stream, stream.give([this, record] { stamp(record); }), nullptr};
    records_ = record;
}

void HostEvent::record(std::shared_ptr<const HostCapturePoint> point) noexcept {
    const std::lock_guard guard(mutex_);
    ++records_;
    mark_ = {nullptr, 0, std::move(point)};
}

void HostEvent::stamp(std::uint64_t record) noexcept {
    const std::lock_guard guard(mutex_);
    if (records_ == record) time_ns_ = platform::monotonic_clock_ns();
}

HostMark HostEvent::mark() const noexcept {
    const std::lock_guard guard(mutex_);
    return mark_;
}

HostEvent::Time HostEvent::time() const noexcept {
    const std::lock_guard guard(mutex_);
    // `stamp` took the lock before the mark was reached, so the time is set if it is reached.
    return {mark_, has_timing_, mark_.is_reached(), time_ns_};
}

}  // namespace tensorpool::device
