#pragma once

#include <cstddef>
#include <cstdint>

#include "device/caching/blocks/block.hpp"
#include "device/caching/blocks/record_pool.hpp"
#include "device/caching/streams/event_pool.hpp"
#include "device/caching/streams/stream_cache.hpp"
#include "statistics/metrics/device_metrics.hpp"

namespace tensorpool::device {

/// Another stream that uses a block. With the block's record until it is freed, then in the queue
/// of that stream until that has passed.
struct StreamUse {
    Block* block = nullptr;
    StreamCache* stream = nullptr;
    EventHandle event = nullptr;  // taken when the use was told, recorded when the block was freed
    StreamUse* next_of_block = nullptr;
    StreamUse* next_in_queue = nullptr;
};

/// Blocks that were freed while other streams may use them. Each stream has a queue of its own, in
/// the order in which events were recorded on it, so a slow stream holds back its own blocks only,
/// and one look at the head tells whether anything is to be done. Under the allocator's lock.
class DeferredFrees {
public:
    DeferredFrees(Backend& backend, int device, EventPool& events,
                  statistics::DeviceTotals& totals) noexcept
        : backend_(backend), device_(device), events_(events), totals_(totals) {}

    /// What the free will need is made now, so that it cannot fail. False if the stream is known
    /// to use it already. Throws std::bad_alloc.
    bool add_use(Block& block, StreamCache& stream);
    static bool has_use(const Block& block, StreamHandle stream) noexcept;
    /// A block with uses was freed: records an event on each of their streams.
    void defer(Block& block) noexcept;
    /// A block that may be used again, each time; nullptr when there is none left. `begin` first.
    void begin() noexcept;
    Block* next(StreamCache& stream) noexcept;
    /// Nothing more is given to this stream, and all that it was given is done.
    void forget_uses(Block& block, const StreamCache& stream) noexcept;

    bool is_empty() const noexcept { return waiting_ == 0; }
    bool is_captured(const StreamCache& stream) const noexcept;

private:
    void queue(StreamUse& use) noexcept;
    bool has_passed(const StreamUse& use) noexcept;
    void give(StreamUse& use) noexcept;

    Backend& backend_;
    int device_;
    EventPool& events_;
    statistics::DeviceTotals& totals_;
    RecordPool<StreamUse> records_;
    std::size_t waiting_ = 0;             // uses in queues
    StreamUse* after_capture_ = nullptr;  // of streams that were captured when the block was freed
};

}  // namespace tensorpool::device
