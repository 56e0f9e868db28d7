#pragma once

#include <cstdint>
#include <string>

#include "common/settings.hpp"
#include "common/units.hpp"

namespace tensorpool::command::record {

/// What came of a recording.
struct Outcome {
    std::uint64_t process = 0;
    std::string path;
    bool has_begun = false;      ///< the process has seen that it was asked
    double begun_after = 0;      ///< seconds from asking
    double seconds = 0;          ///< from there on
    bool process_ended = false;  ///< before the recording was to end
    std::uint64_t entries = 0;
    std::uint64_t dropped = 0;
    std::uint64_t bytes = 0;  ///< of the file
    std::uint64_t threads_left_out = 0;
    std::uint64_t names_left_out = 0;
    std::string problem;  ///< why the file takes no more; "" where it does
};

ExitCode exit_code_of(const Outcome& outcome);
/// What is to be known of a recording that is of some use; for people, without the last newline.
std::string to_text(const Outcome& outcome, Sizes sizes);
std::string to_json(const Outcome& outcome);
/// Why it is of none, or less than it should be, and what to do next; "" where nothing is wrong.
std::string complaint_of(const Outcome& outcome);

}  // namespace tensorpool::command::record
