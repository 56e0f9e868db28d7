#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/cycle_counter.hpp"
#include "trace/ring_layout.hpp"
#include "trace/stack_sampling.hpp"

namespace tensorpool::trace {

/// The calling thread's ring, as its writing sees it. Zeros: none yet, which looks like a full one.
struct OwnRing {
    TraceEntry* entries = nullptr;
    RingHead* head = nullptr;
    std::uint64_t next = 0;        // the number of the next entry
    std::uint64_t room_until = 0;  // next <= room_until
    std::size_t ring = ring_count;
    std::uint64_t recording = 0;  // which one it was taken for
    SampleDistance sampling{};
    bool is_announced = false;           // the ring says whose it is
    bool is_left_out = false;            // and counted so
    std::uint64_t calls_until_look = 0;  // of a thread that found no ring
    // While the ring is full: since when, and how often the reader had shown itself then.
    std::uint64_t full_since_ns = 0;
    std::uint64_t beats_seen = 0;

    /// REQUIRES: next < room_until.
    TraceEntry& begin_entry() noexcept { return entries[next % ring_entries]; }
    void end_entry() noexcept {
        ++next;
        // Pairs with the reader's acquire: what it counts is written.
        head->written.store(next, std::memory_order_release);
    }
    void write(const TraceEntry& entry) noexcept {
        begin_entry() = entry;
        end_entry();
    }
};

}  // namespace tensorpool::trace
