#pragma once

/// @file
/// Builds recordings for tests.

#include <cstdint>
#include <string>
#include <vector>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::trace::testing {

/// One process, number 7, called "program", from its start to its end, with one thread, number 70,
/// and one pool, "global", source 1.
class MadeRecording {
public:
    static constexpr std::uint32_t global = 1;

    MadeRecording() {
        process("program", 7);
        thread(0, 70);
        recording_.sources.push_back({.name = "?"});
        source(TraceSource::pool, "global");
        recording_.modules.push_back({.path = "?"});
        recording_.stacks.emplace_back();
    }

    std::uint32_t process(std::string name, std::uint64_t number) {
        recording_.processes.push_back(
            {.number = number, .name = std::move(name), .from_start = true, .ended = true});
        return static_cast<std::uint32_t>(recording_.processes.size() - 1);
    }
    std::uint32_t thread(std::uint32_t process, std::uint64_t number) {
        recording_.threads.push_back({process, number});
        return static_cast<std::uint32_t>(recording_.threads.size() - 1);
    }
    std::uint32_t source(TraceSource kind, std::string name, std::uint32_t process = 0) {
        const auto index = static_cast<std::uint32_t>(recording_.sources.size());
        recording_.sources.push_back(
            {.process = process, .kind = kind, .number = index, .name = std::move(name)});
        return index;
    }
    std::uint32_t module(std::string path) {
        recording_.modules.push_back(
            {.process = 0, .number = recording_.modules.size(), .path = std::move(path)});
        return static_cast<std::uint32_t>(recording_.modules.size() - 1);
    }
    std::uint32_t stack(std::vector<RecordedFrame> frames) {
        recording_.stacks.push_back(std::move(frames));
        return static_cast<std::uint32_t>(recording_.stacks.size() - 1);
    }

    /// Adds a call, 1 µs after the previous one.
    Call& call(TraceAction action, std::uint64_t address, std::uint64_t bytes,
               std::uint32_t source = global) {
        const std::uint64_t time = recording_.calls.empty() ? 0 : last().time_ns + 1000;
        recording_.calls.push_back({.time_ns = time,
                                    .address = address,
                                    .bytes = bytes,
                                    .source = source,
                                    .action = action});
        return last();
    }
    Call& allocate(std::uint64_t address, std::uint64_t bytes, std::uint32_t source = global) {
        return call(TraceAction::allocate, address, bytes, source);
    }
    Call& deallocate(std::uint64_t address, std::uint64_t block_bytes,
                     std::uint32_t source = global) {
        return call(TraceAction::deallocate, address, block_bytes, source);
    }
    Call& begin_scope(std::uint32_t scope) { return call(TraceAction::scope_begin, 0, 0, scope); }
    Call& end_scope(std::uint32_t scope) { return call(TraceAction::scope_end, 0, 0, scope); }

    /// Records the capacity of `source` from the last call on.
    void hold(std::uint64_t bytes, std::uint32_t source = global) {
        const std::uint64_t time = recording_.calls.empty() ? 0 : last().time_ns;
        recording_.capacities.push_back({.time_ns = time, .bytes = bytes, .source = source});
    }

    Call& last() { return recording_.calls.back(); }
    Recording& recording() { return recording_; }

private:
    Recording recording_;
};

}  // namespace tensorpool::command::trace::testing
