#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/call_runs.hpp"
#include "trace/recording.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool::command::trace {

/// Collects what sources held, ring by ring, and puts it in the order of time.
class CapacityChanges {
public:
    void add(std::uint64_t time, std::uint32_t source, std::uint64_t bytes) {
        changes_.push_back({time, bytes, source});
    }
    /// A source went: it holds nothing from there on.
    void end(std::uint64_t time, std::uint32_t source) { ends_.push_back({time, 0, source}); }

    /// Times are those that were given. `sources`: how many there are.
    std::vector<CapacityChange> take(std::size_t sources);

private:
    std::vector<CapacityChange> changes_;
    std::vector<CapacityChange> ends_;
};

/// Each stack once, however often it was sampled.
class StackTable {
public:
    /// The number of a stack: 0 for an empty one.
    std::uint32_t number_of(const std::vector<RecordedFrame>& frames) {
        if (frames.empty()) return 0;
        const auto [at, added] =
            numbers_.try_emplace(frames, static_cast<std::uint32_t>(numbers_.size() + 1));
        return at->second;
    }
    /// All of them by their numbers, the empty one first. The table is empty then.
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
            std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, a word at a time
            for (const RecordedFrame& frame : frames) {
                hash = (hash ^ frame.module) * 0x100000001b3;
                hash = (hash ^ frame.offset) * 0x100000001b3;
            }
            return hash ^ hash >> 32;
        }
    };
    std::unordered_map<std::vector<RecordedFrame>, std::uint32_t, Hash> numbers_;
};

/// Makes nanoseconds of cycles, from moments that are known by both clocks. How long a cycle is
/// follows from the two that lie furthest apart.
class TraceClock {
public:
    void add(std::uint64_t cycles, std::uint64_t unix_ns) noexcept {
        if (!has_any_ || cycles < first_.cycles) first_ = {cycles, unix_ns};
        if (!has_any_ || cycles > last_.cycles) last_ = {cycles, unix_ns};
        has_any_ = true;
    }
    /// Nanoseconds from `begin` to `cycles`; 0 for what came before.
    std::uint64_t ns_between(std::uint64_t begin, std::uint64_t cycles) const noexcept {
        if (cycles <= begin) return 0;
        const double ns = static_cast<double>(cycles - begin) * ns_per_cycle();
        constexpr double most = 0x1p63;
        return ns < most ? static_cast<std::uint64_t>(ns) : std::uint64_t{1} << 63;
    }

private:
    struct Moment {
        std::uint64_t cycles = 0;
        std::uint64_t unix_ns = 0;
    };

    // Counters of processors run at 1 MHz to 10 GHz. What lies far outside was measured over a
    // step of the system's clock, or by nobody.
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

/// Makes a recording of the chunks of a trace file.
class RecordingBuilder {
public:
    /// `path` stands in errors.
    explicit RecordingBuilder(std::string path);

    /// In the order of the file. Throws TraceError where it holds what cannot be.
    void add(const TraceChunk& chunk);
    /// Once, after the last chunk.
    Recording finish(std::uint64_t cut_bytes);

private:
    struct Ring {
        CallRuns runs;
        std::uint32_t thread = no_thread;
        std::uint64_t cycles = 0;  // of its last entry
        std::uint64_t dropped = 0;
        std::uint16_t stream = 0;           // of its next allocation
        std::vector<RecordedFrame> frames;  // of the last call's stack, so far
    };
    /// Numbers that mean something in this process only, and what they stand for.
    struct Process {
        std::uint32_t index = 0;
        std::unordered_map<std::uint64_t, std::uint32_t> threads;
        std::unordered_map<std::uint64_t, std::uint32_t> sources;
        std::unordered_map<std::uint64_t, std::uint32_t> modules;
        std::map<std::uint32_t, Ring> rings;
    };
    static constexpr std::uint32_t no_thread = 0xffffffff;

    // recording_builder.cpp
    [[noreturn]] void fail(const TraceChunk& chunk, const std::string& what) const;
    void add_process(const TraceChunk& chunk);
    Process& process_of(const TraceChunk& chunk);
    void add_names(Process& process, const TraceChunk& chunk);
    void add_modules(Process& process, const TraceChunk& chunk);

    // recording_entries.cpp
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
    std::uint64_t begun_cycles_ = 0;  // of the first process
    std::uint64_t calls_ = 0;
    std::deque<Process> processes_;
    // By the number that chunks give; the last one where a number was used again.
    std::unordered_map<std::uint32_t, Process*> by_number_;
};

}  // namespace tensorpool::command::trace
