#include "device/deferral/event_pool.hpp"

namespace tensorpool::device {

EventPool::~EventPool() {
    for (const EventHandle event : all_) (void)backend_.destroy_event(device_, event);
}

EventHandle EventPool::take() {
    EventHandle event = nullptr;
    if (!free_.empty()) {
        event = free_.back();
        free_.pop_back();
        return event;
    }
    if (all_.capacity() == all_.size()) all_.reserve(2 * all_.size() + 16);
    free_.reserve(all_.capacity());  // so that `give` never allocates
    const DeviceStatus status = backend_.create_event(device_, EventFlags::none, &event);
    if (status != DeviceStatus::ok) return nullptr;
    all_.push_back(event);
    return event;
}

}  // namespace tensorpool::device
