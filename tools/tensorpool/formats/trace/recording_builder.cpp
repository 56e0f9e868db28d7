#include <deque>
#include <queue>

#include "formats/trace/recording.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::trace {
namespace {

/// The calls of one ring in pieces, so that each piece can be freed when it has been merged. Until
/// then, `Call::time_ns` holds cycles. No piece is empty.
using CallRuns = std::deque<std::vector<Call>>;

/// A ring and the time of its next call.
using Next = std::pair<std::uint64_t, std::size_t>;
using Queue = std::priority_queue<Next, std::vector<Next>, std::greater<>>;

/// Merges by time; at equal times, in the order of the rings. Frees each piece when it has been
/// merged, so that memory holds at most one copy of all calls.
class Merge {
public:
    explicit Merge(std::vector<CallRuns> rings)
        : rings_(std::move(rings)), positions_(rings_.size()) {
        std::size_t count = 0;
        for (std::size_t ring = 0; ring < rings_.size(); ++ring) {
            for (const auto& run : rings_[ring]) count += run.size();
            enter(ring);
        }
        calls_.reserve(count);
    }

    std::vector<Call> run() {
        while (!queue_.empty()) {
            const std::size_t ring = queue_.top().second;
            queue_.pop();
            take_until_next(ring);
            enter(ring);
        }
        return std::move(calls_);
    }

private:
    bool has_more(std::size_t ring) const { return !rings_[ring].empty(); }
    const Call& next_of(std::size_t ring) const { return rings_[ring].front()[positions_[ring]]; }
    void enter(std::size_t ring) {
        if (has_more(ring)) queue_.emplace(next_of(ring).time_ns, ring);
    }
    // Takes the calls of a ring that precede the next call of every other ring.
    void take_until_next(std::size_t ring) {
        do {
            calls_.push_back(next_of(ring));
            if (++positions_[ring] == rings_[ring].front().size()) {
                rings_[ring].pop_front();
                positions_[ring] = 0;
            }
        } while (has_more(ring) &&
                 (queue_.empty() || Next{next_of(ring).time_ns, ring} < queue_.top()));
    }

    std::vector<CallRuns> rings_;
    std::vector<std::size_t> positions_;  // in the first run of each ring
    Queue queue_;
    std::vector<Call> calls_;
};

constexpr std::uint64_t max_page_bytes = std::uint64_t{1} << 30;

template <std::size_t Bytes>
std::string text_of(const char (&stored)[Bytes]) {
    return {stored, strnlen(stored, Bytes)};
}

// Converts the entries of rings to calls.

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

/// Collects the capacities of sources ring by ring, and orders them by time.
class CapacityChanges {
public:
    void add(std::uint64_t time, std::uint32_t source, std::uint64_t bytes) {
        changes_.push_back({time, bytes, source});
    }
    /// Records that a source was destroyed, so its capacity is 0 from then on.
    void end(std::uint64_t time, std::uint32_t source) { ends_.push_back({time, 0, source}); }

    /// Returns the changes, with times as they were added. `sources` is the number of sources.
    // A starting recorder may report a source after its end. Such changes are dropped.
    std::vector<CapacityChange> take(std::size_t sources) {
        std::vector<bool> has_changes(sources);
        std::vector<std::uint64_t> ended(sources, UINT64_MAX);
        for (const CapacityChange& change : changes_) has_changes[change.source] = true;
        for (const CapacityChange& end : ends_) {
            ended[end.source] = std::min(ended[end.source], end.time_ns);
        }
        std::erase_if(changes_, [&](const CapacityChange& change) {
            return change.time_ns >= ended[change.source];
        });
        for (std::uint32_t source = 0; source < sources; ++source) {
            if (!has_changes[source] || ended[source] == UINT64_MAX) continue;
            changes_.push_back({ended[source], 0, source});
        }
        std::ranges::stable_sort(changes_, {}, &CapacityChange::time_ns);
        return std::move(changes_);
    }

private:
    std::vector<CapacityChange> changes_;
    std::vector<CapacityChange> ends_;
};

/// Stores each distinct stack once.
class StackTable {
public:
    /// Returns the number of a stack; 0 for an empty one.
    std::uint32_t number_of(const std::vector<RecordedFrame>& frames) {
        if (frames.empty()) return 0;
        const auto [at, added] =
            numbers_.try_emplace(frames, static_cast<std::uint32_t>(numbers_.size() + 1));
        return at->second;
    }
    /// Returns all stacks in order of their numbers, the empty one first, and empties the table.
    std::vector<std::vector<RecordedFrame>> take() {
        std::vector<std::vector<RecordedFrame>> stacks(numbers_.size() + 1);
        while (!numbers_.empty()) {
            auto node = numbers_.extract(numbers_.begin());
            stacks[node.mapped()] = std::move(node.key());
        }
        return stacks;
    }

private:
    struct Hash {
        std::size_t operator()(const std::vector<RecordedFrame>& frames) const noexcept {
            std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, one word at a time
            for (const RecordedFrame& frame : frames) {
                hash = (hash ^ frame.module) * 0x100000001b3;
                hash = (hash ^ frame.offset) * 0x100000001b3;
            }
            return hash ^ hash >> 32;
        }
    };
    std::unordered_map<std::vector<RecordedFrame>, std::uint32_t, Hash> numbers_;
};

/// Converts cycles to nanoseconds, from moments whose time is known in both. The two moments that
/// lie furthest apart determine the length of a cycle.
class TraceClock {
public:
    void add(std::uint64_t cycles, std::uint64_t unix_ns) noexcept {
        if (!has_any_ || cycles < first_.cycles) first_ = {cycles, unix_ns};
        if (!has_any_ || cycles > last_.cycles) last_ = {cycles, unix_ns};
        has_any_ = true;
    }
    /// Nanoseconds from `begin` to `cycles`; 0 if `cycles` is earlier.
    std::uint64_t ns_between(std::uint64_t begin, std::uint64_t cycles) const noexcept {
        if (cycles <= begin) return 0;
        const double ns = static_cast<double>(cycles - begin) * ns_per_cycle();
        constexpr double max_ns = 0x1p63;
        return ns < max_ns ? static_cast<std::uint64_t>(ns) : std::uint64_t{1} << 63;
    }

private:
    struct Moment {
        std::uint64_t cycles = 0;
        std::uint64_t unix_ns = 0;
    };

    // Cycle counters run at 1 MHz to 10 GHz. Values far outside stem from a step of the system
    // clock or from a damaged file.
    double ns_per_cycle() const noexcept {
        if (last_.unix_ns <= first_.unix_ns) return 1;
        const double ns = static_cast<double>(last_.unix_ns - first_.unix_ns) /
                          static_cast<double>(last_.cycles - first_.cycles);
        return ns > 0.01 && ns < 10'000 ? ns : 1;
    }

    Moment first_;
    Moment last_;
    bool has_any_ = false;
};

class RecordingBuilder {
public:
    /// `path` appears in error messages.
    explicit RecordingBuilder(std::string path) : path_(std::move(path)) {
        recording_.sources.push_back({.name = "?"});
        recording_.modules.push_back({.path = "?"});
    }

    /// Adds a chunk, in the order of the file. Throws TraceError if its contents are invalid.
    void add(const TraceChunk& chunk) {
        clock_.add(chunk.header.cycles, chunk.header.unix_ns);
        switch (chunk.header.kind) {
            case TraceChunkKind::process:
                return add_process(chunk);
            case TraceChunkKind::names:
                return add_names(process_of(chunk), chunk);
            case TraceChunkKind::modules:
                return add_modules(process_of(chunk), chunk);
            case TraceChunkKind::entries:
                return add_entries(process_of(chunk), chunk);
            case TraceChunkKind::end:
                recording_.processes[process_of(chunk).index].ended = true;
                return;
        }
    }
    /// To be called once, after the last chunk.
    Recording finish(std::uint64_t cut_bytes) {
        std::vector<CallRuns> rings;
        for (Process& process : processes_) {
            for (auto& [number, ring] : process.rings) {
                end_stack(ring);
                recording_.processes[process.index].dropped += ring.dropped;
                rings.push_back(std::move(ring.runs));
            }
        }
        recording_.stacks = stacks_.take();
        recording_.calls = Merge(std::move(rings)).run();
        for (Call& call : recording_.calls) {
            call.time_ns = clock_.ns_between(begun_cycles_, call.time_ns);
        }
        recording_.capacities = capacities_.take(recording_.sources.size());
        for (CapacityChange& change : recording_.capacities) {
            change.time_ns = clock_.ns_between(begun_cycles_, change.time_ns);
        }
        recording_.cut_bytes = cut_bytes;
        return std::move(recording_);
    }

private:
    struct Ring {
        CallRuns runs;
        std::uint32_t thread = no_thread;
        std::uint64_t cycles = 0;  // of its last entry
        std::uint64_t dropped = 0;
        std::uint16_t stream = 0;           // of its next allocation
        std::vector<RecordedFrame> frames;  // of the stack of the last call, so far
    };
    /// Maps numbers that are valid within this process to indices.
    struct Process {
        std::uint32_t index = 0;
        std::unordered_map<std::uint64_t, std::uint32_t> threads;
        std::unordered_map<std::uint64_t, std::uint32_t> sources;
        std::unordered_map<std::uint64_t, std::uint32_t> modules;
        std::map<std::uint32_t, Ring> rings;
    };
    static constexpr std::uint32_t no_thread = 0xffffffff;

    [[noreturn]] void fail(const TraceChunk& chunk, const std::string& what) const {
        throw TraceError(path_, chunk.offset, what);
    }
    // A process number may occur twice: for a process recorded twice, or for a later process.
    void add_process(const TraceChunk& chunk) {
        const TraceProcess& described = chunk.records<TraceProcess>().front();
        if (!std::has_single_bit(described.page_bytes) || described.page_bytes > max_page_bytes) {
            fail(chunk,
                 fmt::format("found a process with pages of {} B; expected a power of two up to "
                             "{} B",
                             described.page_bytes, max_page_bytes));
        }
        clock_.add(described.begun_cycles, described.begun_unix_ns);
        if (recording_.processes.empty() || described.begun_cycles < begun_cycles_) {
            begun_cycles_ = described.begun_cycles;
            recording_.begun_unix_ns = described.begun_unix_ns;
        }
        Process& process = processes_.emplace_back();
        process.index = static_cast<std::uint32_t>(recording_.processes.size());
        by_number_[chunk.header.process] = &process;
        recording_.processes.push_back({.number = chunk.header.process,
                                        .name = text_of(described.name),
                                        .page_bytes = described.page_bytes,
                                        .stack_interval = described.stack_interval,
                                        .from_start = described.from_start != 0,
                                        .begun_unix_ns = described.begun_unix_ns});
    }
    Process& process_of(const TraceChunk& chunk) {
        const auto found = by_number_.find(chunk.header.process);
        if (found == by_number_.end()) {
            fail(chunk, fmt::format("found a chunk of process {}; expected a preceding chunk that "
                                    "describes this process",
                                    chunk.header.process));
        }
        return *found->second;
    }
    void add_names(Process& process, const TraceChunk& chunk) {
        for (const TraceName& name : chunk.records<TraceName>()) {
            if (name.kind < TraceSource::pool || name.kind > TraceSource::planned) {
                fail(chunk, fmt::format("found a name of kind {}; expected 1 to 6",
                                        static_cast<std::uint32_t>(name.kind)));
            }
            const auto [at, is_new] = process.sources.try_emplace(
                name.source, static_cast<std::uint32_t>(recording_.sources.size()));
            if (is_new) recording_.sources.emplace_back();
            recording_.sources[at->second] = {.process = process.index,
                                              .kind = name.kind,
                                              .number = name.source,
                                              .name = text_of(name.text)};
        }
    }
    void add_modules(Process& process, const TraceChunk& chunk) {
        for (const TraceModule& module : chunk.records<TraceModule>()) {
            const auto [at, is_new] = process.modules.try_emplace(
                module.number, static_cast<std::uint32_t>(recording_.modules.size()));
            if (!is_new) continue;
            recording_.modules.push_back(
                {.process = process.index, .number = module.number, .path = text_of(module.path)});
        }
    }

    void add_entries(Process& process, const TraceChunk& chunk) {
        Ring& ring = process.rings[chunk.header.ring];
        ring.dropped = std::max(ring.dropped, chunk.header.dropped);
        const auto entries = chunk.records<TraceEntry>();
        calls_ += entries.size();
        if (calls_ >= max_calls) {
            fail(chunk, fmt::format("found more than {} calls so far; record for a shorter time",
                                    max_calls));
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
    void check(const TraceChunk& chunk, const TraceEntry& entry) const {
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
    void add_call(Process& process, Ring& ring, const TraceEntry& entry) {
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
        if (entry.action == TraceAction::gone)
            capacities_.end(ring.cycles, source_of(process, entry));
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
    void add_frames(const Process& process, Ring& ring, const TraceEntry& entry) {
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
    void end_stack(Ring& ring) {
        if (ring.frames.empty()) return;
        for (auto run = ring.runs.rbegin(); run != ring.runs.rend(); ++run) {
            if (run->empty()) continue;
            run->back().stack = stacks_.number_of(ring.frames);
            break;
        }
        ring.frames.clear();
    }
    std::uint32_t thread_of(Process& process, std::uint64_t number) {
        const auto [at, is_new] = process.threads.try_emplace(
            number, static_cast<std::uint32_t>(recording_.threads.size()));
        if (is_new) recording_.threads.push_back({.process = process.index, .number = number});
        return at->second;
    }
    // For a ring that an earlier recorder began to read: its calls keep their order.
    std::uint32_t unknown_thread(const Process& process) {
        recording_.threads.push_back({.process = process.index, .number = 0});
        return static_cast<std::uint32_t>(recording_.threads.size() - 1);
    }
    std::uint16_t stream_of(std::uint64_t handle) {
        constexpr std::size_t max_streams = 0x10000;
        const auto [at, is_new] =
            streams_.try_emplace(handle, static_cast<std::uint16_t>(recording_.streams.size()));
        if (!is_new) return at->second;
        if (recording_.streams.size() == max_streams) return at->second = 0;
        recording_.streams.push_back(handle);
        return at->second;
    }
    std::uint32_t source_of(Process& process, const TraceEntry& entry) {
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

    std::string path_;
    Recording recording_;
    StackTable stacks_;
    CapacityChanges capacities_;
    TraceClock clock_;
    std::unordered_map<std::uint64_t, std::uint16_t> streams_ = {{0, 0}};
    std::uint64_t begun_cycles_ = 0;  // of the process that began first
    std::uint64_t calls_ = 0;
    std::deque<Process> processes_;
    // By the process number in chunks; if a number occurs twice, the last process.
    std::unordered_map<std::uint32_t, Process*> by_number_;
};

}  // namespace

Recording read_trace(Input input) {
    RecordingBuilder builder(input.name());
    TraceFile file(std::move(input));
    for (TraceChunk chunk; file.next(chunk);) builder.add(chunk);
    return builder.finish(file.cut_bytes());
}

}  // namespace tensorpool::command::trace
