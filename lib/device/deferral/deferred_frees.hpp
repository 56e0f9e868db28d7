#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <tensorpool/device/backend.hpp>

#include "device/deferral/event_pool.hpp"
#include "device/deferral/record_pool.hpp"
#include "statistics/metrics/device_metrics.hpp"

namespace tensorpool::device {

struct StreamUse;

enum class BlockState : std::uint8_t {
    free,      // in a set of its stream. Owner: the allocator's lock
    parked,    // in a bin of its stream. Owner: the stream's lock
    in_use,    // a caller's, and no other stream was told. Changed under the stream's lock
    shared,    // a caller's, and other streams were told
    leaving,   // a caller gave it back, and somebody is being told of it
    deferred,  // free once other streams have passed. Owner: the allocator's lock
    scalars,   // cut into scalars. Owner: the allocator's lock
    taken,     // out of the sets: being handed out, or given back, by one thread
    mapping,   // addresses that one thread is mapping memory at
    kept,      // taken, and the device did not take its memory back
    hole,      // addresses without memory
};

/// A block that streams may still use after it was freed. Under the allocator's lock, but for what
/// is said otherwise.
struct DeferrableBlock {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    StreamUse* uses = nullptr;  // streams that use it
    std::uint32_t waits = 0;    // of a deferred one: streams that have not passed
    // Relaxed: neighbours look whether it is free, which only changes under the allocator's lock.
    std::atomic<BlockState> state = BlockState::free;

    bool is(BlockState other) const noexcept {
        return state.load(std::memory_order_relaxed) == other;
    }
    void set(BlockState to) noexcept { state.store(to, std::memory_order_relaxed); }
    std::byte* end() const noexcept { return address + bytes; }
};

/// Freed blocks that wait for one stream, in the order of their events.
struct StreamQueue {
    StreamHandle stream = nullptr;
    StreamUse* first = nullptr;
    StreamUse* last = nullptr;
    std::uint64_t added = 0;   // uses that came into the queue
    std::uint64_t passed = 0;  // uses that left it
    std::uint64_t bytes = 0;   // of those too that have no event yet: the stream is captured
};

/// A stream that uses a block. With the block's record until it is freed, then in the queue of that
/// stream until that has passed.
struct StreamUse {
    DeferrableBlock* block = nullptr;
    StreamQueue* queue = nullptr;
    EventHandle event = nullptr;  // taken when the use was told, recorded when the block was freed
    StreamUse* next_of_block = nullptr;
    StreamUse* next_in_queue = nullptr;
};

/// Blocks that were freed while streams may use them. Each stream has a queue of its own, in the
/// order in which events were recorded on it, so a slow stream holds back its own blocks only, and
/// one look at the head tells whether anything is to be done. Under the allocator's lock.
class DeferredFrees {
public:
    DeferredFrees(Backend& backend, int device, EventPool& events,
                  statistics::DeviceTotals& totals) noexcept
        : backend_(backend), device_(device), events_(events), totals_(totals) {}

    /// What the free will need is made now, so that it cannot fail. False if the stream is known
    /// to use it already. Throws std::bad_alloc.
    bool add_use(DeferrableBlock& block, StreamQueue& stream);
    /// The same for a stream that is told at the free itself. REQUIRES: one use was reserved.
    void add_reserved_use(DeferrableBlock& block, StreamQueue& stream) noexcept;
    /// So many reserved uses can be added. Throws std::bad_alloc.
    void reserve(std::size_t uses) { records_.reserve(uses); }
    static bool has_use(const DeferrableBlock& block, StreamHandle stream) noexcept;
    /// A block with uses was freed: records an event on each of their streams.
    void defer(DeferrableBlock& block) noexcept;
    /// Puts into queues what waited for the end of a capture.
    void begin() noexcept;
    /// A block that may be used again, each time; nullptr when there is none left. `begin` first.
    DeferrableBlock* next(StreamQueue& stream) noexcept;
    /// The same of the first `added` uses, of which it is known that the stream has passed them,
    /// whatever their events say by now.
    DeferrableBlock* next_up_to(StreamQueue& stream, std::uint64_t added) noexcept;
    /// The same of all uses, those too that waited for the end of a capture. REQUIRES: nothing runs
    /// on the device any more.
    DeferrableBlock* next_of_all(StreamQueue& stream) noexcept;
    /// Nothing more is given to this stream, and all that it was given is done.
    void forget_uses(DeferrableBlock& block, const StreamQueue& stream) noexcept;
    /// The uses by streams that have nothing to do are no more.
    void forget_idle_uses(DeferrableBlock& block) noexcept;

    /// Any thread, without the lock too: who has just freed a block need not see it.
    bool is_empty() const noexcept { return waiting_.load(std::memory_order_relaxed) == 0; }
    bool is_captured(StreamHandle stream) const noexcept;
    /// Whether work that was given to the stream so far may be under way.
    bool is_busy(StreamHandle stream) const noexcept;

private:
    void add(DeferrableBlock& block, StreamQueue& stream, StreamUse& use) noexcept;
    void queue(StreamUse& use) noexcept;
    bool has_passed(const StreamUse& use) const noexcept;
    DeferrableBlock* pass_first(StreamQueue& stream) noexcept;
    void give(StreamUse& use) noexcept;
    template <class Condition>
    void forget_uses_if(DeferrableBlock& block, Condition is_over) noexcept;

    Backend& backend_;
    int device_;
    EventPool& events_;
    statistics::DeviceTotals& totals_;
    RecordPool<StreamUse> records_;
    detail::Counter waiting_ = 0;         // uses of freed blocks
    StreamUse* after_capture_ = nullptr;  // of streams that were captured when the block was freed
};

}  // namespace tensorpool::device
