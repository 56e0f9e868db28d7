#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>

#include <tensorpool/device/backend.hpp>

#include "device/device_table.hpp"
#include "platform/platform.hpp"

namespace tensorpool::device {

inline constexpr std::uintptr_t handle_of_default = 1;     // of the default stream
inline constexpr std::uintptr_t handle_of_own_stream = 2;  // of the calling thread's default stream
// The lowest bits of keys of threads. Handles are addresses, which are aligned, or the two above.
inline constexpr std::uintptr_t thread_bits = 3;

inline bool is_of_thread(StreamHandle key) noexcept {
    return (reinterpret_cast<std::uintptr_t>(key) & thread_bits) == thread_bits;
}

/// The key of a thread's default stream. Links itself into the list of living threads.
class ThreadKey {
public:
    ThreadKey() noexcept {
        const std::lock_guard guard(mutex);
        number_ = ++last_number;
        next_ = living;
        living = this;
    }
    ~ThreadKey() {
        const std::lock_guard guard(mutex);
        ThreadKey** link = &living;
        while (*link != this) link = &(*link)->next_;
        *link = next_;
    }
    ThreadKey(const ThreadKey&) = delete;
    ThreadKey& operator=(const ThreadKey&) = delete;

    StreamHandle key() const noexcept {
        return reinterpret_cast<StreamHandle>(number_ << 2 | thread_bits);
    }
    static bool is_living(StreamHandle key) noexcept {
        const std::lock_guard guard(mutex);
        const ThreadKey* one = living;
        while (one != nullptr && one->key() != key) one = one->next_;
        return one != nullptr;
    }
    static StreamHandle own() noexcept {
        thread_local const ThreadKey own;
        return own.key();
    }

private:
    static inline constinit std::mutex mutex;
    // Guarded by `mutex`:
    static inline constinit ThreadKey* living = nullptr;
    static inline constinit std::uintptr_t last_number = 0;

    std::uintptr_t number_;
    ThreadKey* next_;
};

/// The calls to a backend about streams, by key.
///
/// A stream's key is its handle, except where handles name a stream indirectly
/// (`DeviceAbilities::names_default_streams`): the default stream always has the key nullptr, and
/// the default stream of each thread has a key that no other thread ever has. Source: issues 535
/// and 582 of RMM.
///
/// A stream that the program made itself may be asked for only during a call for it: its owner may
/// have destroyed it since, and the driver may crash then. Source: issue 510 of RMM.
class StreamCalls {
public:
    StreamCalls(Backend& backend, int device) noexcept
        : backend_(backend),
          device_(device),
          names_default_streams_(backend.abilities(device).names_default_streams),
          captures_under_way_(backend.captures_under_way()) {}

    StreamHandle key_of(StreamHandle handle) const noexcept {
        const auto number = reinterpret_cast<std::uintptr_t>(handle);
        // 0 wraps around, so one comparison finds the handles 1 and 2.
        return number - 1 > 1 || !names_default_streams_ ? handle : key_of_default(number);
    }
    /// Whether the key is that of a thread's default stream, and the thread has ended.
    static bool is_of_ended_thread(StreamHandle key) noexcept {
        return is_of_thread(key) && !ThreadKey::is_living(key);
    }
    /// Whether the key is that of another thread's default stream, which the calling thread cannot
    /// name: a call would mean its own.
    static bool is_of_other_thread(StreamHandle key) noexcept {
        return is_of_thread(key) && key != ThreadKey::own();
    }
    /// Whether the stream may be asked at any time, by the calling thread.
    bool may_ask(StreamHandle key) const noexcept {
        return is_of_thread(key) ? key == ThreadKey::own() : backend_.owns_stream(device_, key);
    }

    // REQUIRES, for the functions below: the stream may be asked, or the caller names it.

    /// The handle that names the stream on the calling thread.
    static StreamHandle handle_of(StreamHandle key) noexcept {
        return is_of_thread(key) ? reinterpret_cast<StreamHandle>(handle_of_own_stream) : key;
    }
    /// Returns the number of the capture that the stream is part of, or 0.
    std::uint64_t capture_of(StreamHandle key) const noexcept {
        CaptureState state;
        const DeviceStatus status = backend_.capture_state(device_, handle_of(key), state);
        return status == DeviceStatus::ok && state.capturing ? state.id : 0;
    }
    /// Whether the stream is being captured into a graph. Such a stream may not be queried, and an
    /// event recorded on it would become part of the graph.
    bool is_captured(StreamHandle key) const noexcept {
        // The default stream is never captured. Where programs can use streams without the backend,
        // as with CUDA, they can also capture them without it.
        const bool is_known_to_be_free = captures_under_way_.load(std::memory_order_relaxed) == 0 &&
                                         (key == nullptr || !names_default_streams_);
        return !is_known_to_be_free && capture_of(key) != 0;
    }
    /// Returns a number that no other stream ever has, even under the same handle; 0 if unknown.
    std::uint64_t id_of(StreamHandle key) const noexcept {
        std::uint64_t id = 0;
        const DeviceStatus status = backend_.stream_id(device_, handle_of(key), &id);
        return status == DeviceStatus::ok ? id : 0;
    }
    DeviceStatus query(StreamHandle key) const noexcept {
        return backend_.query_stream(device_, handle_of(key));
    }
    DeviceStatus record(EventHandle event, StreamHandle key) const noexcept {
        return backend_.record_event(device_, event, handle_of(key));
    }
    DeviceStatus synchronize(StreamHandle key) const noexcept {
        return backend_.synchronize_stream(device_, handle_of(key));
    }

private:
    [[gnu::noinline]] static StreamHandle key_of_default(std::uintptr_t number) noexcept {
        return number == handle_of_default ? nullptr : ThreadKey::own();
    }

    Backend& backend_;
    const int device_;
    const bool names_default_streams_;
    const std::atomic<unsigned>& captures_under_way_;
};

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
