// Converts the entries of rings to calls.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "formats/trace/recording_builder.hpp"

namespace tensorpool::command::trace {
namespace {

// Life::begin can distinguish this many calls.
constexpr std::uint64_t max_calls = Lifetime::none;
// Recorders record up to 30.
constexpr std::size_t max_frames = 256;
constexpr unsigned module_shift = 48;
// The address space of a process with five levels of page tables.
constexpr std::uint64_t max_capacity = std::uint64_t{1} << 57;

bool has_block(TraceAction action) {
    switch (action) {
        case TraceAction::allocate:
        case TraceAction::deallocate:
        case TraceAction::resize:
        case TraceAction::arena_allocate:
        case TraceAction::scratch_allocate:
        case TraceAction::defer:
        case TraceAction::slab:
        case TraceAction::slab_end:
            return true;
        default:
            return false;
    }
}

// The kind of a source without a name.
TraceSource kind_of(TraceAction action) {
    switch (action) {
        case TraceAction::arena_allocate:
        case TraceAction::arena_mark:
        case TraceAction::arena_release:
            return TraceSource::arena;
        case TraceAction::scratch_allocate:
        case TraceAction::scratch_mark:
        case TraceAction::scratch_release:
            return TraceSource::scratch;
        case TraceAction::scope_begin:
        case TraceAction::scope_end:
            return TraceSource::scope;
        case TraceAction::stream:
        case TraceAction::defer:
        case TraceAction::slab:
        case TraceAction::slab_end:
            return TraceSource::device;
        default:
            return TraceSource::pool;
    }
}

}  // namespace

void RecordingBuilder::check(const TraceChunk& chunk, const TraceEntry& entry) const {
    if (entry.alignment_log2 > 63) {
        fail(chunk, fmt::format("found an entry with the alignment 2^{}; expected at most 2^63",
                                entry.alignment_log2));
    }
    if (has_block(entry.action) && entry.bytes > UINT64_MAX - entry.address) {
        fail(chunk,
             fmt::format("found a block of {} B at 0x{:x}; expected one that ends within the "
                         "address space",
                         entry.bytes, entry.address));
    }
    if (entry.action == TraceAction::capacity && entry.bytes > max_capacity) {
        fail(chunk, fmt::format("found a capacity of {} B; expected at most {} B", entry.bytes,
                                max_capacity));
    }
}

void RecordingBuilder::add_entries(Process& process, const TraceChunk& chunk) {
    Ring& ring = process.rings[chunk.header.ring];
    ring.dropped = std::max(ring.dropped, chunk.header.dropped);
    const auto entries = chunk.records<TraceEntry>();
    calls_ += entries.size();
    if (calls_ >= max_calls) {
        fail(chunk,
             fmt::format("found more than {} calls so far; record for a shorter time", max_calls));
    }
    std::vector<Call>& run = ring.runs.emplace_back();
    run.reserve(entries.size());
    for (const TraceEntry& entry : entries) {
        if (entry.action == TraceAction::frames) {
            add_frames(process, ring, entry);
            continue;
        }
        end_stack(ring);
        check(chunk, entry);
        add_call(process, ring, entry);
    }
    if (run.empty()) ring.runs.pop_back();
}

void RecordingBuilder::add_call(Process& process, Ring& ring, const TraceEntry& entry) {
    if (entry.action == TraceAction::thread) {
        ring.thread = thread_of(process, entry.address);
        return;
    }
    // Skips unknown actions, which may be from a later version.
    if (entry.action == TraceAction::none || entry.action > TraceAction::slab_end) return;
    ring.cycles = std::max(ring.cycles, entry.cycles);
    if (entry.action == TraceAction::capacity) {
        return capacities_.add(ring.cycles, source_of(process, entry), entry.bytes);
    }
    if (entry.action == TraceAction::stream) {
        (void)source_of(process, entry);  // makes the source a device, whatever its name
        ring.stream = stream_of(entry.address);
        return;
    }
    if (ring.thread == no_thread) ring.thread = unknown_thread(process);
    if (entry.action == TraceAction::gone) capacities_.end(ring.cycles, source_of(process, entry));
    const std::uint16_t stream = std::exchange(ring.stream, std::uint16_t{0});
    ring.runs.back().push_back(
        {.time_ns = ring.cycles,
         .address = entry.address,
         .bytes = entry.bytes,
         .thread = ring.thread,
         .source = source_of(process, entry),
         .action = entry.action,
         .alignment_log2 = entry.alignment_log2,
         .stream = entry.action == TraceAction::allocate ? stream : std::uint16_t{0}});
}

void RecordingBuilder::add_frames(const Process& process, Ring& ring, const TraceEntry& entry) {
    const auto some = std::bit_cast<TraceFrames>(entry);
    for (std::size_t i = 0; i < std::min<std::size_t>(some.count, 3); ++i) {
        const auto module = process.modules.find(some.frames[i] >> module_shift);
        const std::uint64_t offset = some.frames[i] & ((std::uint64_t{1} << module_shift) - 1);
        const bool is_known = module != process.modules.end();
        ring.frames.push_back({.module = is_known ? module->second : 0, .offset = offset});
    }
    if (some.last != 0 || ring.frames.size() >= max_frames) end_stack(ring);
}

// Assigns the stack to the last call, which may be in the previous piece.
void RecordingBuilder::end_stack(Ring& ring) {
    if (ring.frames.empty()) return;
    for (auto run = ring.runs.rbegin(); run != ring.runs.rend(); ++run) {
        if (run->empty()) continue;
        run->back().stack = stacks_.number_of(ring.frames);
        break;
    }
    ring.frames.clear();
}

std::uint32_t RecordingBuilder::thread_of(Process& process, std::uint64_t number) {
    const auto [at, is_new] =
        process.threads.try_emplace(number, static_cast<std::uint32_t>(recording_.threads.size()));
    if (is_new) recording_.threads.push_back({.process = process.index, .number = number});
    return at->second;
}

// For a ring that an earlier recorder began to read: its calls keep their order.
std::uint32_t RecordingBuilder::unknown_thread(const Process& process) {
    recording_.threads.push_back({.process = process.index, .number = 0});
    return static_cast<std::uint32_t>(recording_.threads.size() - 1);
}

std::uint16_t RecordingBuilder::stream_of(std::uint64_t handle) {
    constexpr std::size_t max_streams = 0x10000;
    const auto [at, is_new] =
        streams_.try_emplace(handle, static_cast<std::uint16_t>(recording_.streams.size()));
    if (!is_new) return at->second;
    if (recording_.streams.size() == max_streams) return at->second = 0;
    recording_.streams.push_back(handle);
    return at->second;
}

std::uint32_t RecordingBuilder::source_of(Process& process, const TraceEntry& entry) {
    if (entry.source == 0) return 0;
    const auto [at, is_new] = process.sources.try_emplace(
        entry.source, static_cast<std::uint32_t>(recording_.sources.size()));
    if (is_new) {
        recording_.sources.push_back({.process = process.index,
                                      .kind = kind_of(entry.action),
                                      .number = entry.source,
                                      .name = "?"});
    }
    // A capacity may precede the calls that show the kind of a source.
    RecordedSource& source = recording_.sources[at->second];
    const TraceSource kind = kind_of(entry.action);
    if (kind != TraceSource::pool && source.name == "?") source.kind = kind;
    return at->second;
}

}  // namespace tensorpool::command::trace
