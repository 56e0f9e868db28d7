#pragma once

/// @file
/// Builds a recording from the chunks of a trace file.

#include <deque>
#include <unordered_map>

#include "formats/trace/recording.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::trace {

/// The calls of one ring in pieces, so that each piece can be freed when it has been merged. Until
/// then, `Call::time_ns` holds cycles. No piece is empty.
using CallRuns = std::deque<std::vector<Call>>;

/// Merges by time; at equal times, in the order of the rings. Empties `rings` while merging, so
/// that memory holds at most one copy of all calls.
std::vector<Call> merge(std::vector<CallRuns> rings);

/// Collects the capacities of sources ring by ring, and orders them by time.
class CapacityChanges {
public:
    void add(std::uint64_t time, std::uint32_t source, std::uint64_t bytes) {
        changes_.push_back({time, bytes, source});
    }
    /// Records that a source was destroyed, so its capacity is 0 from then on.
    void end(std::uint64_t time, std::uint32_t source) { ends_.push_back({time, 0, source}); }

    /// Returns the changes, with times as they were added. `sources` is the number of sources.
    std::vector<CapacityChange> take(std::size_t sources);

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

/// Builds a recording from the chunks of a trace file.
class RecordingBuilder {
public:
    /// `path` appears in error messages.
    explicit RecordingBuilder(std::string path);

    /// Adds a chunk, in the order of the file. Throws TraceError if its contents are invalid.
    void add(const TraceChunk& chunk);
    /// To be called once, after the last chunk.
    Recording finish(std::uint64_t cut_bytes);

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

    [[noreturn]] void fail(const TraceChunk& chunk, const std::string& what) const;
    void add_process(const TraceChunk& chunk);
    Process& process_of(const TraceChunk& chunk);
    void add_names(Process& process, const TraceChunk& chunk);
    void add_modules(Process& process, const TraceChunk& chunk);

    void add_entries(Process& process, const TraceChunk& chunk);
    void check(const TraceChunk& chunk, const TraceEntry& entry) const;
    void add_call(Process& process, Ring& ring, const TraceEntry& entry);
    void add_frames(const Process& process, Ring& ring, const TraceEntry& entry);
    void end_stack(Ring& ring);
    std::uint32_t thread_of(Process& process, std::uint64_t number);
    std::uint32_t unknown_thread(const Process& process);
    std::uint16_t stream_of(std::uint64_t handle);
    std::uint32_t source_of(Process& process, const TraceEntry& entry);

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

/// The first line of a log of RMM's logging_resource_adaptor.
inline constexpr std::string_view rmm_log_beginning = "Thread,Time,Action,Pointer,Size,Stream";

/// Reads a log as one process with one pool, "rmm". Times are times of day; if they go back by half
/// a day or more, the next day has begun. Streams are ignored. Throws TraceError.
Recording read_rmm_log(Input& input);

}  // namespace tensorpool::command::trace
