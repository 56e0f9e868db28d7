#pragma once

/// @file
/// Writes recordings in the formats of other tools. Each function throws CommandError if the file
/// cannot be written.

#include "common/output.hpp"
#include "formats/trace/history.hpp"

namespace tensorpool::command::export_ {

using trace::Range;

/// The slabs of a device's allocator over time. Slabs that touch are merged.
class Slabs {
public:
    void add(Range range) {
        ever_.add(range);
        have_grown_ = now_.add(range) || have_grown_;
    }
    void remove(Range range) { now_.remove(range); }

    /// The present slabs, in order of address.
    std::vector<Range> all() const { return now_.all(); }
    /// Whether the address has lain in a slab at any time.
    bool has_known(std::uint64_t address) const { return ever_.contains(address); }
    /// Whether a slab was extended at its end or its beginning.
    bool have_grown() const noexcept { return have_grown_; }

private:
    trace::RangeSet now_;
    trace::RangeSet ever_;
    bool have_grown_ = false;
};

using trace::BlockFacts;
using trace::History;
using trace::Lifetime;
using trace::Recording;

enum class At { peak, end };

/// A moment in a recording, given as the number of calls that have returned.
struct Moment {
    std::uint32_t calls = 0;
    bool has_begun(const Lifetime& lifetime) const noexcept {
        return lifetime.begin == Lifetime::none || lifetime.begin < calls;
    }
    bool has_ended(const Lifetime& lifetime) const noexcept {
        return lifetime.end != Lifetime::none && lifetime.end < calls;
    }
    /// Whether its owner has freed it. Until it ends, streams may still use it.
    bool is_deferred(const Lifetime& lifetime) const noexcept {
        return lifetime.deferred != Lifetime::none && lifetime.deferred < calls;
    }
    bool is_alive(const Lifetime& lifetime) const noexcept {
        return has_begun(lifetime) && !has_ended(lifetime);
    }
};

/// Finds a moment. The peak is the first moment at which all processes together have the most bytes
/// alive.
Moment moment_of(const History& history, At at);

/// Writes a memory snapshot of PyTorch (torch.cuda.memory._snapshot) for memory_viz. Each process
/// is a device, followed by a device for each allocator of device memory. The address ranges of
/// pools are segments, and so are slabs. A device's history holds its last `max_entries` calls up
/// to the moment. Returns how many calls were left out.
std::uint64_t write_snapshot(const History& history, Moment moment, std::uint64_t max_entries,
                             WrittenFile& file);

/// Writes a heap profile of gperftools, for jeprof and pprof: the blocks alive at the moment, and
/// all blocks allocated until then, by sampled call stack, or by pool and scope if no stacks were
/// sampled. It contains all names, so that readers need no program.
void write_heap_profile(const History& history, Moment moment, WrittenFile& file);

/// Writes a trace for the viewers of Chrome and Perfetto: the live bytes of each pool, arena,
/// scratch and device, the scopes, and the failed requests.
void write_chrome_trace(const History& history, WrittenFile& file);

/// Writes a log as RMM's logging_resource_adaptor does: each block's allocation and free. Blocks
/// made before the recording are allocated in the first lines. A resized block is freed and
/// allocated again. Addresses of the second process are moved by 2^48, of the third by twice that,
/// and so on. Those of each device's allocator are moved likewise, after the processes.
void write_rmm_log(const History& history, WrittenFile& file);

}  // namespace tensorpool::command::export_
