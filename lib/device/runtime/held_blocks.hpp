#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// Blocks that were freed while streams still had work with them, each until all of its streams
/// have passed. Events of one stream are reached in order, so only the first of each is asked: a
/// slow stream holds back what it uses and nothing else. Any thread.
class HeldBlocks {
public:
    struct Block {
        void* memory;
        std::size_t bytes;
        std::size_t waits;  // for so many streams; under mutex_
    };
    /// Gets what all streams have passed. Called with no lock but `collecting_`.
    using Give = void (*)(void* owner, const Block& block) noexcept;

    /// The backend outlives it.
    HeldBlocks(Backend& backend, int device, void* owner, Give give) noexcept;
    /// Gives all that is held. REQUIRES: the device was waited for, or is lost.
    ~HeldBlocks();
    HeldBlocks(const HeldBlocks&) = delete;
    HeldBlocks& operator=(const HeldBlocks&) = delete;

    /// Whether work that was given to the stream so far may be under way.
    bool is_busy(StreamHandle stream) noexcept;
    /// Keeps a block until these streams have passed. Where no event can be had it waits instead.
    /// Returns how many events were recorded for it.
    std::size_t hold(void* memory, std::size_t bytes,
                     std::span<const StreamHandle> streams) noexcept;

    /// Relaxed: who has just freed a block need not see it here.
    bool holds_any() const noexcept { return held_.load(std::memory_order_relaxed) != 0; }
    /// Gives what has been passed; its bytes. Does nothing while another thread does it.
    std::size_t collect() noexcept;
    /// Waits for the streams that hold something back, then gives it; times that it waited.
    std::size_t wait_and_collect() noexcept;
    /// As that, for this stream only; and forgets it, for its handle may be another's next.
    DeviceStatus end_stream(StreamHandle stream) noexcept;

private:
    /// nullptr for the event: the stream was captured when the block was freed, and an event
    /// recorded then would have become a part of the graph. It is recorded after the capture.
    struct Waiting {
        EventHandle event;
        Block* block;
    };
    struct Queue {
        StreamHandle stream;
        std::deque<Waiting> waiting;
    };

    bool is_captured(StreamHandle stream) noexcept;
    EventHandle record(StreamHandle stream) noexcept;
    EventHandle take_event() noexcept;
    void keep_event(EventHandle event) noexcept;
    bool enqueue(StreamHandle stream, Waiting waiting) noexcept;
    Queue& queue_of(StreamHandle stream);
    Queue* queue_at(std::size_t place) noexcept;
    std::size_t count_waiting(const Queue& queue) noexcept;
    Waiting* first_of(Queue& queue) noexcept;
    std::size_t collect(Queue& queue) noexcept;
    std::size_t pass_first(Queue& queue) noexcept;
    bool has_passed(Queue& queue, EventHandle& event) noexcept;
    std::size_t pass(Block* block) noexcept;

    Backend& backend_;
    const int device_;
    const bool captures_;
    void* const owner_;
    const Give give_;
    std::atomic<std::size_t> held_{0};

    // Who takes out of queues, or ends one. Taken before mutex_.
    std::mutex collecting_;
    std::mutex mutex_;  // of what follows; no call to the backend is made under it
    std::vector<std::unique_ptr<Queue>> queues_;
    std::vector<EventHandle> events_;  // to be used again
};

}  // namespace tensorpool::device
