#include "device/deferral/deferred_frees.hpp"

#include <new>
#include <utility>

#include "platform/platform.hpp"

namespace tensorpool::device {

void StreamQueue::show() noexcept {
    if (record == nullptr) return;
    record->waiting_bytes.store(bytes, std::memory_order_relaxed);
    const std::uint64_t since = first != nullptr ? first->freed_ns : after_capture_since_ns;
    record->waiting_since_ns.store(bytes == 0 ? 0 : since, std::memory_order_relaxed);
}

bool DeferredFrees::add_use(DeferrableBlock& block, StreamQueue& stream) {
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

void DeferredFrees::add_reserved_use(DeferrableBlock& block, StreamQueue& stream) noexcept {
    StreamUse& use = records_.take();
    try {
        use.event = events_.take();
    } catch (const std::bad_alloc&) {
        use.event = nullptr;  // the stream itself is queried instead
    }
    add(block, stream, use);
}

void DeferredFrees::add(DeferrableBlock& block, StreamQueue& stream, StreamUse& use) noexcept {
    use.block = &block;
    use.queue = &stream;
    use.next_in_queue = nullptr;
    use.next_of_block = block.uses;
    block.uses = &use;
}

bool DeferredFrees::has_use(const DeferrableBlock& block, StreamHandle stream) noexcept {
    for (const StreamUse* use = block.uses; use != nullptr; use = use->next_of_block) {
        if (use->queue->stream == stream) return true;
    }
    return false;
}

void DeferredFrees::defer(DeferrableBlock& block) noexcept {
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

void DeferredFrees::queue_or_wait(StreamUse& use) noexcept {
    if (StreamCalls::is_of_other_thread(use.queue->stream)) return queue_without_event(use);
    if (!calls_.is_captured(use.queue->stream)) return queue(use);
    use.next_in_queue = after_capture_;
    after_capture_ = &use;
    use.queue->after_capture_since_ns = use.freed_ns;
}

/// The use ends with a wait for the device.
void DeferredFrees::queue_without_event(StreamUse& use) noexcept {
    events_.give(std::exchange(use.event, nullptr));
    queue(use);
}

/// Records an event behind all work submitted to the stream so far. If that fails, the use ends
/// when the stream is found idle.
void DeferredFrees::queue(StreamUse& use) noexcept {
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

bool DeferredFrees::is_busy(StreamHandle stream) const noexcept {
    return !calls_.may_ask(stream) || calls_.is_captured(stream) || !is_done(calls_.query(stream));
}

void DeferredFrees::begin() noexcept {
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

DeferrableBlock* DeferredFrees::next(StreamQueue& stream) noexcept {
    while (stream.first != nullptr && has_passed(*stream.first)) {
        if (DeferrableBlock* const block = pass_first(stream)) return block;
    }
    return nullptr;
}

DeferrableBlock* DeferredFrees::next_up_to(StreamQueue& stream, std::uint64_t added) noexcept {
    while (stream.passed < added) {
        if (DeferrableBlock* const block = pass_first(stream)) return block;
    }
    return nullptr;
}

DeferrableBlock* DeferredFrees::next_of_all(StreamQueue& stream) noexcept {
    while (after_capture_ != nullptr) {
        StreamUse& use = *after_capture_;
        after_capture_ = use.next_in_queue;
        events_.give(std::exchange(use.event, nullptr));
        queue(use);
    }
    return next_up_to(stream, stream.added);
}

/// Ends the first use. Returns its block if no other stream is waited for, and otherwise nullptr.
DeferrableBlock* DeferredFrees::pass_first(StreamQueue& stream) noexcept {
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

bool DeferredFrees::has_passed(const StreamUse& use) const noexcept {
    if (use.event == nullptr) return !is_busy(use.queue->stream);
    return is_done(backend_.query_event(device_, use.event));
}

bool DeferredFrees::will_free(const StreamQueue& stream) const noexcept {
    for (const StreamUse* use = stream.first; use != nullptr; use = use->next_in_queue) {
        // Without an event, the stream itself is queried, which it cannot be while it is captured.
        if (use->event == nullptr &&
            (!calls_.may_ask(stream.stream) || calls_.is_captured(stream.stream))) {
            return false;
        }
        if (!waits_for_capture(*use->block)) return true;
    }
    return false;
}

bool DeferredFrees::waits_for_capture(const DeferrableBlock& block) const noexcept {
    for (const StreamUse* use = after_capture_; use != nullptr; use = use->next_in_queue) {
        if (use->block == &block) return true;
    }
    return false;
}

template <class Condition>
void DeferredFrees::forget_uses_if(DeferrableBlock& block, Condition is_over) noexcept {
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

void DeferredFrees::forget_uses(DeferrableBlock& block, const StreamQueue& stream) noexcept {
    forget_uses_if(block, [&](const StreamUse& use) { return use.queue == &stream; });
}

void DeferredFrees::forget_idle_uses(DeferrableBlock& block) noexcept {
    forget_uses_if(block, [&](const StreamUse& use) { return !is_busy(use.queue->stream); });
}

void DeferredFrees::give(StreamUse& use) noexcept {
    events_.give(use.event);
    use.event = nullptr;
    records_.give(use);
}

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
