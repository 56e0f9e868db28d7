#pragma once

#include <cstdint>
#include <string>

#include "common/settings.hpp"
#include "common/units.hpp"

namespace tensorpool::command::record {

/// The result of a recording.
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

}  // namespace tensorpool::command::record
