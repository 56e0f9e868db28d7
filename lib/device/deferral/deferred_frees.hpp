#pragma once

#include <condition_variable>
#include <deque>
#include <new>
#include <utility>

#include "device/deferral/stream_calls.hpp"
#include "device/device_table.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {

/// Releases a mutex that the calling thread holds, until the end of the scope.
class Unlocked {
public:
    explicit Unlocked(std::mutex& mutex) : mutex_(mutex) { mutex_.unlock(); }
    ~Unlocked() { mutex_.lock(); }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

private:
    std::mutex& mutex_;
};

/// Waits for one notification; releases the mutex, which the calling thread holds, for the wait.
inline void wait_unlocked(std::condition_variable& changed, std::mutex& mutex) {
    std::unique_lock lock(mutex, std::adopt_lock);
    changed.wait(lock);
    lock.release();
}

/// Waits until `is_over` returns true; releases the mutex, which the calling thread holds, for the
/// wait.
template <class Condition>
void wait_unlocked(std::condition_variable& changed, std::mutex& mutex, Condition is_over) {
    std::unique_lock lock(mutex, std::adopt_lock);
    changed.wait(lock, is_over);
    lock.release();
}

/// Whether work is done, from the device's answer about an event behind it or about its stream.
/// Memory that waits for streams is free when the device reports that the work is done, or that the
/// device is lost, because no work runs any more then. After any other error nothing is known: the
/// memory stays held back until the stream or the allocator is destroyed.
constexpr bool is_done(DeviceStatus status) noexcept {
    return status == DeviceStatus::ok || status == DeviceStatus::device_lost;
}

[[gnu::always_inline]] inline void count_allocation(statistics::DeviceStreamCounters& counters,
                                                    std::size_t requested,
                                                    std::size_t bytes) noexcept {
    detail::add(counters.allocations, 1);
    detail::add(counters.requested_bytes, requested);
    detail::add(counters.allocated_bytes, bytes);
}
inline void count_free(statistics::DeviceStreamCounters& counters, std::size_t requested,
                       std::size_t bytes) noexcept {
    detail::add_release(counters.deallocations, 1);
    detail::add_release(counters.deallocated_bytes, bytes);
    detail::add_release(counters.deallocated_requested_bytes, requested);
}

/// A pool of records of one type. Records are reused, and freed only with the pool: a thread that
/// reads a record after it was given back still reads a record of this type. REQUIRES: one thread
/// at a time.
template <class Record>
class RecordPool {
public:
    /// Returns a record; its fields keep the values they were left with. Throws std::bad_alloc.
    Record& take() {
        if (!free_.empty()) {
            Record& record = *free_.back();
            free_.pop_back();
            return record;
        }
        make_room();
        return all_.emplace_back();
    }
    void give(Record& record) noexcept { free_.push_back(&record); }
    /// Makes sure that `count` records can be taken without an exception. Throws std::bad_alloc.
    void reserve(std::size_t count) {
        while (free_.size() < count) {
            make_room();
            free_.push_back(&all_.emplace_back());
        }
    }

private:
    /// Makes room for one more record in `free_`, so that `give` never allocates.
    void make_room() {
        if (free_.capacity() <= all_.size()) free_.reserve(2 * all_.size() + 16);
    }

    std::deque<Record> all_;
    std::vector<Record*> free_;
};

/// A pool of events without timing. They are created on demand, reused, and destroyed with the
/// pool. REQUIRES: one thread at a time.
class EventPool {
public:
    EventPool(Backend& backend, int device) noexcept : backend_(backend), device_(device) {}
    ~EventPool() {
        for (const EventHandle event : all_) (void)backend_.destroy_event(device_, event);
    }
    EventPool(const EventPool&) = delete;
    EventPool& operator=(const EventPool&) = delete;

    /// Returns an event, or nullptr if the device cannot create one. Throws std::bad_alloc.
    EventHandle take() {
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

struct StreamUse;

enum class BlockState : std::uint8_t {
    free,      // in a set of its stream. Guarded by the allocator's lock
    parked,    // in a bin of its stream. Guarded by the stream's lock
    in_use,    // held by a caller; no other stream is recorded. Changed under the stream's lock
    shared,    // held by a caller; other streams are recorded
    leaving,   // freed by the caller; observers are being notified
    deferred,  // waits until other streams have passed. Guarded by the allocator's lock
    scalars,   // cut into scalars. Guarded by the allocator's lock
    taken,     // out of the sets: one thread is handing it out or releasing it
    mapping,   // addresses at which one thread is mapping memory
    kept,      // taken, but the device did not take its memory back
    lost,      // partly unmapped, and the device did not map it again: returned later
    hole,      // addresses without memory
};

/// A block that streams may still use after it was freed. Guarded by the allocator's lock, unless
/// stated otherwise.
struct DeferrableBlock {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    StreamUse* uses = nullptr;  // streams that use it
    std::uint32_t waits = 0;    // of a deferred block: streams that have not passed
    // Relaxed: the neighbours only check for `free`, which changes only under the allocator's lock.
    std::atomic<BlockState> state = BlockState::free;

    bool is(BlockState other) const noexcept {
        return state.load(std::memory_order_relaxed) == other;
    }
    void set(BlockState to) noexcept { state.store(to, std::memory_order_relaxed); }
    std::byte* end() const noexcept { return address + bytes; }
};

struct StreamQueue;

/// A stream's use of a block. It belongs to the block's record until the block is freed, and then
/// to the stream's queue until the stream has passed.
struct StreamUse {
    DeferrableBlock* block = nullptr;
    StreamQueue* queue = nullptr;
    EventHandle event = nullptr;  // reserved with the use, recorded at the free
    std::uint64_t freed_ns = 0;   // by the monotonic clock
    StreamUse* next_of_block = nullptr;
    StreamUse* next_in_queue = nullptr;
};

/// Freed blocks that wait for one stream, in the order of their events.
struct StreamQueue {
    StreamHandle stream = nullptr;  // its key, see StreamCalls
    StreamUse* first = nullptr;
    StreamUse* last = nullptr;
    std::uint64_t added = 0;   // uses ever added to the queue
    std::uint64_t passed = 0;  // uses ever removed from it
    std::uint64_t bytes = 0;   // includes uses without an event yet, while the stream is captured
    std::uint64_t after_capture_since_ns = 0;  // of the last use that waits for a capture's end
    statistics::DeviceStreamRecord* record = nullptr;  // shows how much waits, and since when

    void show() noexcept {
        if (record == nullptr) return;
        record->waiting_bytes.store(bytes, std::memory_order_relaxed);
        const std::uint64_t since = first != nullptr ? first->freed_ns : after_capture_since_ns;
        record->waiting_since_ns.store(bytes == 0 ? 0 : since, std::memory_order_relaxed);
    }
};

/// Blocks that were freed while streams may still use them. Each stream has its own queue, in the
/// order in which events were recorded on it. So a slow stream holds back only its own blocks, and
/// the head of a queue shows whether any block can be freed. Guarded by the allocator's lock.
class DeferredFrees {
public:
    DeferredFrees(Backend& backend, int device, EventPool& events,
                  statistics::DeviceTotals& totals) noexcept
        : backend_(backend),
          device_(device),
          calls_(backend, device),
          events_(events),
          totals_(totals) {}

    /// Adds a use and allocates everything that the free will need, so that it cannot fail. Returns
    /// false if this use is already recorded. Throws std::bad_alloc.
    bool add_use(DeferrableBlock& block, StreamQueue& stream) {
        if (has_use(block, stream.stream)) return false;
        StreamUse& use = records_.take();
        try {
            use.event = events_.take();
        } catch (...) {
            records_.give(use);
            throw;
        }
        add(block, stream, use);
        return true;
    }
    /// Adds a use by a stream that is only known at the free. REQUIRES: one use was reserved.
    void add_reserved_use(DeferrableBlock& block, StreamQueue& stream) noexcept {
        StreamUse& use = records_.take();
        try {
            use.event = events_.take();
        } catch (const std::bad_alloc&) {
            use.event = nullptr;  // the stream itself is queried instead
        }
        add(block, stream, use);
    }
    /// Reserves records for `uses` calls of `add_reserved_use`. Throws std::bad_alloc.
    void reserve(std::size_t uses) { records_.reserve(uses); }
    static bool has_use(const DeferrableBlock& block, StreamHandle stream) noexcept {
        for (const StreamUse* use = block.uses; use != nullptr; use = use->next_of_block) {
            if (use->queue->stream == stream) return true;
        }
        return false;
    }
    /// Takes a freed block with uses, and records an event on each of their streams.
    void defer(DeferrableBlock& block) noexcept {
        totals_.defer(block.bytes);
        block.set(BlockState::deferred);
        block.waits = 0;
        const std::uint64_t now = platform::monotonic_clock_ns();
        StreamUse* next = nullptr;
        for (StreamUse* use = block.uses; use != nullptr; use = next) {
            next = use->next_of_block;
            ++block.waits;
            detail::add(waiting_, 1);
            use->queue->bytes += block.bytes;
            use->freed_ns = now;
            StreamQueue& stream = *use->queue;
            queue_or_wait(*use);
            stream.show();
        }
        block.uses = nullptr;
    }
    /// Queues the uses that waited for the end of a capture.
    void begin() noexcept {
        StreamUse* waiting = std::exchange(after_capture_, nullptr);
        while (waiting != nullptr) {
            StreamUse& use = *waiting;
            StreamQueue& shown = *use.queue;
            waiting = use.next_in_queue;
            if (calls_.may_ask(use.queue->stream)) {
                queue_or_wait(use);
            } else {
                queue_without_event(use);  // the stream may have been destroyed since
            }
            shown.show();
        }
    }
    /// Returns a block that may be used again, or nullptr if there is none left. Call `begin`
    /// first.
    DeferrableBlock* next(StreamQueue& stream) noexcept {
        while (stream.first != nullptr && has_passed(*stream.first)) {
            if (DeferrableBlock* const block = pass_first(stream)) return block;
        }
        return nullptr;
    }
    /// Like `next`, for the first `added` uses, which the caller knows that the stream has passed.
    /// Their events are not queried.
    DeferrableBlock* next_up_to(StreamQueue& stream, std::uint64_t added) noexcept {
        while (stream.passed < added) {
            if (DeferrableBlock* const block = pass_first(stream)) return block;
        }
        return nullptr;
    }
    /// Like `next`, for all uses, including those that waited for the end of a capture. REQUIRES:
    /// no work is running on the device.
    DeferrableBlock* next_of_all(StreamQueue& stream) noexcept {
        while (after_capture_ != nullptr) {
            StreamUse& use = *after_capture_;
            after_capture_ = use.next_in_queue;
            events_.give(std::exchange(use.event, nullptr));
            queue(use);
        }
        return next_up_to(stream, stream.added);
    }
    /// Ends the queue of a stream that gets no more work, after the caller waited for the stream
    /// and `next` returned nullptr: a block may have been freed since, or an event may be late.
    /// `wait` waits for the stream, without the lock. `pass` takes each block that may be used
    /// again. Throws what `wait` throws.
    template <class Wait, class Pass>
    void end(StreamQueue& stream, std::mutex& mutex, Wait wait, Pass pass) {
        while (stream.bytes != 0) {
            const std::uint64_t added = stream.added;
            {
                const Unlocked unlocked(mutex);
                wait();
            }
            while (DeferrableBlock* const block = next_up_to(stream, added)) pass(*block);
            begin();
        }
    }
    /// Whether the stream's work that is under way will free a block when it ends. Work of a
    /// capture does not end by itself.
    bool will_free(const StreamQueue& stream) const noexcept {
        for (const StreamUse* use = stream.first; use != nullptr; use = use->next_in_queue) {
            // Without an event, the stream itself is queried, which it cannot be while it is
            // captured.
            if (use->event == nullptr &&
                (!calls_.may_ask(stream.stream) || calls_.is_captured(stream.stream))) {
                return false;
            }
            if (!waits_for_capture(*use->block)) return true;
        }
        return false;
    }
    /// Drops the block's use by a stream that has done all its work and gets no more.
    void forget_uses(DeferrableBlock& block, const StreamQueue& stream) noexcept {
        forget_uses_if(block, [&](const StreamUse& use) { return use.queue == &stream; });
    }
    /// Drops the block's uses by streams that have no pending work.
    void forget_idle_uses(DeferrableBlock& block) noexcept {
        forget_uses_if(block, [&](const StreamUse& use) { return !is_busy(use.queue->stream); });
    }

    /// Any thread, also without the lock. May miss a block that another thread has just freed.
    bool is_empty() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }
    /// Whether work submitted to the stream so far may be pending. True for a stream that may not
    /// be asked.
    bool is_busy(StreamHandle stream) const noexcept {
        return !calls_.may_ask(stream) || calls_.is_captured(stream) ||
               !is_done(calls_.query(stream));
    }

private:
    void add(DeferrableBlock& block, StreamQueue& stream, StreamUse& use) noexcept {
        use.block = &block;
        use.queue = &stream;
        use.next_in_queue = nullptr;
        use.next_of_block = block.uses;
        block.uses = &use;
    }
    void queue_or_wait(StreamUse& use) noexcept {
        if (StreamCalls::is_of_other_thread(use.queue->stream)) return queue_without_event(use);
        if (!calls_.is_captured(use.queue->stream)) return queue(use);
        use.next_in_queue = after_capture_;
        after_capture_ = &use;
        use.queue->after_capture_since_ns = use.freed_ns;
    }
    /// The use ends with a wait for the device.
    void queue_without_event(StreamUse& use) noexcept {
        events_.give(std::exchange(use.event, nullptr));
        queue(use);
    }
    /// Records an event behind all work submitted to the stream so far. If that fails, the use ends
    /// when the stream is found idle.
    void queue(StreamUse& use) noexcept {
        StreamQueue& stream = *use.queue;
        if (use.event != nullptr && calls_.record(use.event, stream.stream) != DeviceStatus::ok) {
            events_.give(use.event);
            use.event = nullptr;
        }
        if (use.event != nullptr) detail::add(totals_.events, 1);
        use.next_in_queue = nullptr;
        (stream.last == nullptr ? stream.first : stream.last->next_in_queue) = &use;
        stream.last = &use;
        ++stream.added;
    }
    bool waits_for_capture(const DeferrableBlock& block) const noexcept {
        for (const StreamUse* use = after_capture_; use != nullptr; use = use->next_in_queue) {
            if (use->block == &block) return true;
        }
        return false;
    }
    bool has_passed(const StreamUse& use) const noexcept {
        if (use.event == nullptr) return !is_busy(use.queue->stream);
        return is_done(backend_.query_event(device_, use.event));
    }
    /// Ends the first use. Returns its block if no other stream is waited for, and otherwise
    /// nullptr.
    DeferrableBlock* pass_first(StreamQueue& stream) noexcept {
        StreamUse& use = *stream.first;
        DeferrableBlock& block = *use.block;
        stream.first = use.next_in_queue;
        if (stream.first == nullptr) stream.last = nullptr;
        ++stream.passed;
        stream.bytes -= block.bytes;
        stream.show();
        detail::add(waiting_, std::size_t{0} - 1);
        give(use);
        if (--block.waits != 0) return nullptr;
        totals_.end_deferral(block.bytes);
        return &block;
    }
    void give(StreamUse& use) noexcept {
        events_.give(use.event);
        use.event = nullptr;
        records_.give(use);
    }
    template <class Condition>
    void forget_uses_if(DeferrableBlock& block, Condition is_over) noexcept {
        for (StreamUse** link = &block.uses; *link != nullptr;) {
            StreamUse& use = **link;
            if (is_over(use)) {
                *link = use.next_of_block;
                give(use);
            } else {
                link = &use.next_of_block;
            }
        }
    }

    Backend& backend_;
    int device_;
    StreamCalls calls_;
    EventPool& events_;
    statistics::DeviceTotals& totals_;
    RecordPool<StreamUse> records_;
    detail::Counter waiting_ = 0;         // uses of freed blocks
    StreamUse* after_capture_ = nullptr;  // by streams that were captured when the block was freed
};

}  // namespace tensorpool::device
