#include "device/caching/streams/deferred_frees.hpp"

#include "device/stream_progress.hpp"

namespace tensorpool::device {

bool DeferredFrees::add_use(Block& block, StreamCache& stream) {
    for (const StreamUse* use = block.uses; use != nullptr; use = use->next_of_block) {
        if (use->stream == &stream) return false;
    }
    StreamUse& use = records_.take();
    try {
        use.event = events_.take();
    } catch (...) {
        records_.give(use);
        throw;
    }
    use.block = &block;
    use.stream = &stream;
    use.next_in_queue = nullptr;
    use.next_of_block = block.uses;
    block.uses = &use;
    return true;
}

bool DeferredFrees::has_use(const Block& block, StreamHandle stream) noexcept {
    for (const StreamUse* use = block.uses; use != nullptr; use = use->next_of_block) {
        if (use->stream->stream() == stream) return true;
    }
    return false;
}

void DeferredFrees::defer(Block& block) noexcept {
    totals_.defer(block.bytes);
    block.set(BlockState::deferred);
    block.waits = 0;
    StreamUse* next = nullptr;
    for (StreamUse* use = block.uses; use != nullptr; use = next) {
        next = use->next_of_block;
        ++block.waits;
        ++waiting_;
        use->stream->memory.waiting_bytes += block.bytes;
        if (is_captured(*use->stream)) {
            use->next_in_queue = after_capture_;
            after_capture_ = use;
        } else {
            queue(*use);
        }
    }
    block.uses = nullptr;
}

/// Records an event: all that the stream was given so far. Where that fails, the use has passed
/// when the stream is seen with nothing to do.
void DeferredFrees::queue(StreamUse& use) noexcept {
    StreamCache::Memory& memory = use.stream->memory;
    const StreamHandle stream = use.stream->stream();
    if (use.event != nullptr &&
        backend_.record_event(device_, use.event, stream) != DeviceStatus::ok) {
        events_.give(use.event);
        use.event = nullptr;
    }
    if (use.event != nullptr) detail::add(totals_.events, 1);
    use.next_in_queue = nullptr;
    (memory.last_use == nullptr ? memory.first_use : memory.last_use->next_in_queue) = &use;
    memory.last_use = &use;
}

bool DeferredFrees::is_captured(const StreamCache& stream) const noexcept {
    return device::is_captured(backend_, device_, stream.stream());
}

void DeferredFrees::begin() noexcept {
    StreamUse* waiting = after_capture_;
    after_capture_ = nullptr;
    while (waiting != nullptr) {
        StreamUse& use = *waiting;
        waiting = use.next_in_queue;
        if (is_captured(*use.stream)) {
            use.next_in_queue = after_capture_;
            after_capture_ = &use;
        } else {
            queue(use);
        }
    }
}

Block* DeferredFrees::next(StreamCache& stream) noexcept {
    StreamCache::Memory& memory = stream.memory;
    while (memory.first_use != nullptr && has_passed(*memory.first_use)) {
        StreamUse& use = *memory.first_use;
        Block& block = *use.block;
        memory.first_use = use.next_in_queue;
        if (memory.first_use == nullptr) memory.last_use = nullptr;
        memory.waiting_bytes -= block.bytes;
        --waiting_;
        give(use);
        if (--block.waits == 0) {
            totals_.end_deferral(block.bytes);
            return &block;
        }
    }
    return nullptr;
}

bool DeferredFrees::has_passed(const StreamUse& use) noexcept {
    // A stream that is captured may not be asked.
    if (use.event == nullptr && is_captured(*use.stream)) return false;
    return is_done(use.event != nullptr ? backend_.query_event(device_, use.event)
                                        : backend_.query_stream(device_, use.stream->stream()));
}

void DeferredFrees::forget_uses(Block& block, const StreamCache& stream) noexcept {
    for (StreamUse** place = &block.uses; *place != nullptr;) {
        StreamUse& use = **place;
        if (use.stream == &stream) {
            *place = use.next_of_block;
            give(use);
        } else {
            place = &use.next_of_block;
        }
    }
}

void DeferredFrees::give(StreamUse& use) noexcept {
    events_.give(use.event);
    use.event = nullptr;
    records_.give(use);
}

}  // namespace tensorpool::device
