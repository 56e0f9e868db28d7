#pragma once

#include <algorithm>
#include <chrono>

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

ExitCode exit_code_of(const Outcome& outcome);
/// Summarizes a recording that has begun, for people, without the last newline.
std::string to_text(const Outcome& outcome, Sizes sizes);
std::string to_json(const Outcome& outcome);
/// Returns why a recording is unusable or incomplete, and what to do next; "" if nothing is wrong.
std::string complaint_of(const Outcome& outcome);

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

}  // namespace tensorpool::command::record
