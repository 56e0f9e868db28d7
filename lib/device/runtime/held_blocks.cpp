#include "device/runtime/held_blocks.hpp"

#include <new>

#include "device/stream_progress.hpp"

namespace tensorpool::device {

HeldBlocks::HeldBlocks(Backend& backend, int device, void* owner, Give give) noexcept
    : backend_(backend),
      device_(device),
      captures_(backend.abilities(device).graph_capture),
      owner_(owner),
      give_(give) {}

HeldBlocks::~HeldBlocks() {
    for (const std::unique_ptr<Queue>& queue : queues_) {
        for (const Waiting& waiting : queue->waiting) {
            if (waiting.event != nullptr) backend_.destroy_event(device_, waiting.event);
            pass(waiting.block);
        }
    }
    for (const EventHandle event : events_) backend_.destroy_event(device_, event);
}

bool HeldBlocks::is_captured(StreamHandle stream) noexcept {
    return captures_ && device::is_captured(backend_, device_, stream);
}

bool HeldBlocks::is_busy(StreamHandle stream) noexcept {
    if (is_captured(stream)) return true;
    return !is_done(backend_.query_stream(device_, stream));
}

std::size_t HeldBlocks::hold(void* memory, std::size_t bytes,
                             std::span<const StreamHandle> streams) noexcept {
    Block* const block = new (std::nothrow) Block{memory, bytes, streams.size()};
    if (block == nullptr) {
        for (const StreamHandle stream : streams) backend_.synchronize_stream(device_, stream);
        give_(owner_, {memory, bytes, 0});
        return 0;
    }
    held_.fetch_add(1, std::memory_order_relaxed);
    std::size_t events = 0;
    for (const StreamHandle stream : streams) {
        const bool captured = is_captured(stream);
        const EventHandle event = captured ? nullptr : record(stream);
        if ((captured || event != nullptr) && enqueue(stream, {event, block})) {
            events += event != nullptr ? 1u : 0u;
            continue;
        }
        keep_event(event);
        backend_.synchronize_stream(device_, stream);
        pass(block);
    }
    return events;
}

EventHandle HeldBlocks::record(StreamHandle stream) noexcept {
    const EventHandle event = take_event();
    if (event == nullptr) return nullptr;
    if (backend_.record_event(device_, event, stream) == DeviceStatus::ok) return event;
    keep_event(event);
    return nullptr;
}

EventHandle HeldBlocks::take_event() noexcept {
    {
        const std::lock_guard guard(mutex_);
        if (!events_.empty()) {
            const EventHandle again = events_.back();
            events_.pop_back();
            return again;
        }
    }
    EventHandle event = nullptr;
    backend_.create_event(device_, EventTiming::off, &event);
    return event;
}

void HeldBlocks::keep_event(EventHandle event) noexcept {
    if (event == nullptr) return;
    try {
        const std::lock_guard guard(mutex_);
        events_.push_back(event);
    } catch (const std::bad_alloc&) {
        backend_.destroy_event(device_, event);
    }
}

bool HeldBlocks::enqueue(StreamHandle stream, Waiting waiting) noexcept {
    try {
        const std::lock_guard guard(mutex_);
        queue_of(stream).waiting.push_back(waiting);
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

HeldBlocks::Queue& HeldBlocks::queue_of(StreamHandle stream) {
    for (const std::unique_ptr<Queue>& queue : queues_) {
        if (queue->stream == stream) return *queue;
    }
    queues_.push_back(std::make_unique<Queue>(Queue{stream, {}}));
    return *queues_.back();
}

HeldBlocks::Queue* HeldBlocks::queue_at(std::size_t place) noexcept {
    const std::lock_guard guard(mutex_);
    return place < queues_.size() ? queues_[place].get() : nullptr;
}

std::size_t HeldBlocks::collect() noexcept {
    const std::unique_lock only_one(collecting_, std::try_to_lock);
    if (!only_one) return 0;
    std::size_t bytes = 0;
    for (std::size_t place = 0; Queue* const queue = queue_at(place); ++place) {
        bytes += collect(*queue);
    }
    return bytes;
}

std::size_t HeldBlocks::count_waiting(const Queue& queue) noexcept {
    const std::lock_guard guard(mutex_);
    return queue.waiting.size();
}

// REQUIRES, with the two that follow: `collecting_`. It stays where it is: others only add behind
// it. nullptr for none.
HeldBlocks::Waiting* HeldBlocks::first_of(Queue& queue) noexcept {
    const std::lock_guard guard(mutex_);
    return queue.waiting.empty() ? nullptr : &queue.waiting.front();
}

std::size_t HeldBlocks::collect(Queue& queue) noexcept {
    std::size_t bytes = 0;
    while (Waiting* const first = first_of(queue)) {
        if (!has_passed(queue, first->event)) break;
        bytes += pass_first(queue);
    }
    return bytes;
}

// Its bytes where the stream was the last.
std::size_t HeldBlocks::pass_first(Queue& queue) noexcept {
    const Waiting passed = *first_of(queue);
    {
        const std::lock_guard guard(mutex_);
        queue.waiting.pop_front();
    }
    keep_event(passed.event);
    return pass(passed.block);
}

bool HeldBlocks::has_passed(Queue& queue, EventHandle& event) noexcept {
    if (event == nullptr) {
        if (is_captured(queue.stream)) return false;
        event = record(queue.stream);
    }
    return is_done(event != nullptr ? backend_.query_event(device_, event)
                                    : backend_.synchronize_stream(device_, queue.stream));
}

// One of its streams has passed; its bytes where that was the last.
std::size_t HeldBlocks::pass(Block* block) noexcept {
    {
        const std::lock_guard guard(mutex_);
        if (--block->waits != 0) return 0;
    }
    const std::size_t bytes = block->bytes;
    give_(owner_, *block);
    delete block;
    held_.fetch_sub(1, std::memory_order_relaxed);
    return bytes;
}

std::size_t HeldBlocks::wait_and_collect() noexcept {
    const std::lock_guard only_one(collecting_);
    std::size_t waits = 0;
    for (std::size_t place = 0; Queue* const queue = queue_at(place); ++place) {
        std::size_t waiting = count_waiting(*queue);
        if (waiting == 0) continue;
        const DeviceStatus status = backend_.synchronize_stream(device_, queue->stream);
        ++waits;
        // All that waited before is passed, whatever the events say by now.
        for (; status == DeviceStatus::ok && waiting != 0; --waiting) pass_first(*queue);
        collect(*queue);
    }
    return waits;
}

DeviceStatus HeldBlocks::end_stream(StreamHandle stream) noexcept {
    const std::lock_guard only_one(collecting_);
    const DeviceStatus status = backend_.synchronize_stream(device_, stream);
    if (status != DeviceStatus::ok) return status;
    for (std::size_t place = 0; Queue* const queue = queue_at(place); ++place) {
        if (queue->stream != stream) continue;
        while (first_of(*queue) != nullptr) pass_first(*queue);
        const std::lock_guard guard(mutex_);
        queues_.erase(queues_.begin() + static_cast<std::ptrdiff_t>(place));
        break;
    }
    return status;
}

}  // namespace tensorpool::device
