#pragma once

#include <vector>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// Events without timing, made when there is none left and used again; all of them end with it.
/// REQUIRES: one thread at a time.
class EventPool {
public:
    EventPool(Backend& backend, int device) noexcept : backend_(backend), device_(device) {}
    ~EventPool();
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;

    /// nullptr where the device makes none. Throws std::bad_alloc.
    EventHandle take();
    /// nullptr does nothing.
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
