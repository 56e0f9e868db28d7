#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/call_runs.hpp"
#include "trace/capacity_changes.hpp"
#include "trace/recording.hpp"
#include "trace/stack_table.hpp"
#include "trace/trace_clock.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool::command::trace {

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
