#pragma once

#include <vector>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// A pool of events without timing. They are created on demand, reused, and destroyed with the
/// pool. REQUIRES: one thread at a time.
class EventPool {
public:
    EventPool(Backend& backend, int device) noexcept : backend_(backend), device_(device) {}
    ~EventPool();
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;

    /// Returns an event, or nullptr if the device cannot create one. Throws std::bad_alloc.
    EventHandle take();
    /// Returns an event to the pool. A null handle is ignored.
    void give(EventHandle event) noexcept {
        if (event != nullptr) free_.push_back(event);
    }

private:
    Backend& backend_;
    int device_;
    std::vector<EventHandle> all_;
    std::vector<EventHandle> free_;
};

}  // namespace tensorpool::device
