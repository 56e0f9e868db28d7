#pragma once

#include <algorithm>

#include <nlohmann/json.hpp>

#include "common/settings.hpp"
#include "common/units.hpp"

namespace tensorpool::command::record {

struct Outcome {
    std::uint64_t process = 0;
    std::string path;
    bool has_begun = false;      ///< whether the process has noticed the request
    double begun_after = 0;      ///< seconds from the request
    double seconds = 0;          ///< from the beginning on
    bool process_ended = false;  ///< before the recording was due to end
    std::uint64_t entries = 0;
    std::uint64_t dropped = 0;
    std::uint64_t bytes = 0;  ///< of the file
    std::uint64_t threads_left_out = 0;
    std::uint64_t names_left_out = 0;
    std::string problem;  ///< why the file cannot be written further; "" if it can
};

/// How long to sleep between two reads of the rings of a process, which hold 16,384 entries each. A
/// read that finds many entries shortens the pause, one that finds few lengthens it.
class Pace {
public:
    /// `max` is the number of entries that the fullest ring held at the last read.
    void note(std::size_t max) noexcept {
        if (max > much) pause_ = std::max(pause_ / 2, shortest);
        if (max < little) pause_ = std::min(pause_ * 2, longest);
    }
    std::chrono::nanoseconds pause() const noexcept { return pause_; }

private:
    static constexpr std::size_t much = 4096;
    static constexpr std::size_t little = 1024;
    static constexpr std::chrono::nanoseconds shortest = std::chrono::microseconds(50);
    static constexpr std::chrono::nanoseconds longest = std::chrono::milliseconds(8);

    std::chrono::nanoseconds pause_ = std::chrono::milliseconds(1);
};

inline std::string what_is_missing(const Outcome& outcome) {
    std::string text;
    if (outcome.dropped != 0) {
        text += fmt::format(
            "\n{} calls are missing, because the program made them faster than they could be "
            "written; more idle processors reduce the loss",
            format_count(static_cast<double>(outcome.dropped)));
    }
    if (outcome.threads_left_out != 0) {
        text += fmt::format(
            "\n{} times a thread found none of the 512 rings free; its calls are missing until "
            "another thread ended",
            outcome.threads_left_out);
    }
    if (outcome.names_left_out != 0) {
        text += fmt::format("\n{} pools, arenas and scopes beyond the first 1,024 have no name",
                            outcome.names_left_out);
    }
    return text;
}

inline ExitCode exit_code_of(const Outcome& outcome) {
    if (!outcome.problem.empty()) return finding;
    if (outcome.has_begun) return success;
    return outcome.process_ended ? target_gone : finding;
}

/// Summarizes a recording that has begun, for people, without the last newline.
inline std::string to_text(const Outcome& outcome, Sizes sizes) {
    return fmt::format(
        "{} entries in {:.1f} s, beginning {:.0f} ms after the request; {} in {}{}{}",
        format_count(static_cast<double>(outcome.entries)), outcome.seconds,
        outcome.begun_after * 1e3, format_size(outcome.bytes, sizes), printable(outcome.path),
        outcome.process_ended ? fmt::format("; process {} has ended", outcome.process) : "",
        what_is_missing(outcome));
}

inline std::string to_json(const Outcome& outcome) {
    return nlohmann::ordered_json{
        {"process", outcome.process},
        {"file", printable(outcome.path)},
        {"begun", outcome.has_begun},
        {"begun_after_seconds", outcome.begun_after},
        {"seconds", outcome.seconds},
        {"process_ended", outcome.process_ended},
        {"entries", outcome.entries},
        {"dropped", outcome.dropped},
        {"bytes", outcome.bytes},
        {"threads_left_out", outcome.threads_left_out},
        {"names_left_out", outcome.names_left_out},
        {"problem", outcome.problem},
    }
        .dump();
}

/// Returns why a recording is unusable or incomplete, and what to do next; "" if nothing is wrong.
inline std::string complaint_of(const Outcome& outcome) {
    if (!outcome.problem.empty()) {
        return fmt::format(
            "recording ended early: {} cannot be written further: {}; its contents are readable; "
            "make room, or write to another disk with -o",
            printable(outcome.path), printable(outcome.problem));
    }
    if (outcome.has_begun) return "";
    if (outcome.process_ended) {
        return fmt::format(
            "process {} ended before it noticed the request to record; to record a program from "
            "its first call on, start it with `tensorpool run --trace FILE`",
            outcome.process);
    }
    return fmt::format(
        "process {} has not begun to record: none of its threads took a slow path of a pool, for "
        "example to allocate a large block; record for longer, or while the process works",
        outcome.process);
}

}  // namespace tensorpool::command::record
