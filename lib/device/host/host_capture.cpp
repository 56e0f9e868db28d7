#include "device/host/host_capture.hpp"

#include <algorithm>
#include <iterator>

#include <tensorpool/device/device_status.hpp>

namespace tensorpool::device {

std::size_t HostCapture::add(HostStream::Work work, Points after) {
    after_.reserve(after_.size() + 1);
    work_.push_back(std::move(work));
    after_.push_back(std::move(after));
    return work_.size();
}

bool HostCapture::is_all_before(const Points& points) const {
    std::vector<bool> is_before(work_.size() + 1);
    for (const std::size_t point : points) is_before[point] = true;
    // A piece waits only for pieces with lower numbers, so one descending pass finds all.
    for (std::size_t point = work_.size(); point > 0; --point) {
        if (!is_before[point]) return false;
        for (const std::size_t before : after_[point - 1]) is_before[before] = true;
    }
    return true;
}

std::atomic<std::uint64_t> HostCaptures::last_id_{0};

void HostCaptures::begin(HostStream& stream) {
    const std::lock_guard guard(mutex_);
    if (streams_.contains(&stream)) {
        throw DeviceError(DeviceStatus::in_capture, "the stream is already being captured");
    }
    const std::uint64_t id = last_id_.fetch_add(1, std::memory_order_relaxed) + 1;
    auto capture = std::make_shared<HostCapture>(stream, id);
    streams_.emplace(&stream, HostCapturePoint{std::move(capture), {}});
    under_way_.fetch_add(1, std::memory_order_relaxed);
}

HostGraph HostCaptures::end(HostStream& stream) {
    const std::lock_guard guard(mutex_);
    const auto found = streams_.find(&stream);
    if (found == streams_.end() || &found->second.capture->origin() != &stream) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "no capture in progress began in this stream, expected one");
    }
    const HostCapturePoint point = found->second;
    const bool came_back = point.capture->is_all_before(point.points);
    end_members(*point.capture);
    if (!came_back) {
        throw DeviceError(DeviceStatus::in_capture,
                          "the capture has work of a stream that this one does not wait for; the "
                          "capture ended and its work was discarded");
    }
    return point.capture->take_work();
}

void HostCaptures::end_members(const HostCapture& capture) noexcept {
    const auto self = std::find_if(streams_.begin(), streams_.end(), [&](const auto& member) {
        return member.second.capture.get() == &capture;
    });
    const std::shared_ptr<HostCapture> ended = self->second.capture;
    ended->end();
    std::erase_if(streams_, [&](const auto& member) { return member.second.capture == ended; });
    under_way_.fetch_sub(1, std::memory_order_relaxed);
}

void HostCaptures::forget(HostStream& stream) noexcept {
    if (!any()) return;
    const std::lock_guard guard(mutex_);
    const auto found = streams_.find(&stream);
    if (found == streams_.end()) return;
    if (&found->second.capture->origin() == &stream) {
        end_members(*found->second.capture);
    } else {
        streams_.erase(found);
    }
}

CaptureState HostCaptures::state(const HostStream& stream) {
    const auto point = point_of(stream);
    return point == nullptr ? CaptureState{} : CaptureState{true, point->capture->id()};
}

bool HostCaptures::keep_slow(HostStream& stream, HostStream::Work& work) {
    const std::lock_guard guard(mutex_);
    const auto found = streams_.find(&stream);
    if (found == streams_.end()) return false;
    HostCapturePoint& point = found->second;
    HostCapture::Points next(1);
    next[0] = point.capture->add(std::move(work), point.points);
    point.points = std::move(next);
    return true;
}

std::shared_ptr<const HostCapturePoint> HostCaptures::point_of_slow(const HostStream& stream) {
    const std::lock_guard guard(mutex_);
    const auto found = streams_.find(&stream);
    if (found == streams_.end()) return nullptr;
    return std::make_shared<HostCapturePoint>(found->second);
}

void HostCaptures::join(HostStream& stream, const HostCapturePoint& point) {
    const std::lock_guard guard(mutex_);
    if (!point.capture->is_under_way()) {
        throw DeviceError(DeviceStatus::invalid_argument,
                          "the event was last recorded in a capture that has ended");
    }
    const auto [member, is_new] = streams_.try_emplace(&stream, point);
    if (is_new) return;
    if (member->second.capture != point.capture) {
        throw DeviceError(DeviceStatus::in_capture,
                          "the event was recorded in a capture other than that of the stream");
    }
    HostCapture::Points& points = member->second.points;
    points.insert(points.end(), point.points.begin(), point.points.end());
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
}

void HostCaptures::check_thread_slow() {
    const std::lock_guard guard(mutex_);
    for (const auto& [stream, point] : streams_) {
        if (!point.capture->is_by_this_thread()) continue;
        throw DeviceError(DeviceStatus::in_capture,
                          "this thread is capturing a stream and must end that capture first");
    }
}

void HostCaptures::check_stream(const HostStream& stream) {
    if (point_of(stream) == nullptr) return;
    throw DeviceError(DeviceStatus::in_capture,
                      "the stream is being captured: its work is recorded, not done");
}

}  // namespace tensorpool::device
