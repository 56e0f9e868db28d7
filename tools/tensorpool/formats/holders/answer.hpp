#pragma once

/// @file
/// The answer of a process to the question what refers to its largest arrays.

#include <tensorpool/statistics_reader.hpp>

#include "common/units.hpp"

namespace tensorpool::command::holders {

struct HeldMemory {
    std::uint64_t bytes = 0;
    std::string type;  ///< "numpy.ndarray"
    std::vector<std::uint64_t> shape;
    std::string element_type;          ///< "float32"
    std::string device;                ///< "cpu"
    std::vector<std::string> held_by;  ///< names such as "__main__.history[3]"; may be empty
    std::uint64_t more_holders = 0;    ///< that are not among these
};

struct Answer {
    std::uint64_t objects = 0;  ///< that were looked at
    double pause_seconds = 0;   ///< for which the program stood still
    bool is_cut = false;        ///< the search ended because it took too long
    std::vector<HeldMemory> largest;
};

/// Parses the text of another process, of which nothing is taken for granted. Throws CommandError
/// if it is no answer, or if the process reports that the search failed.
Answer parse_answer(std::uint64_t process, std::string_view text);

std::string to_text(const Answer& answer, std::uint64_t process, std::size_t top, Sizes sizes);
std::string to_json(const Answer& answer, std::uint64_t process, std::size_t top);

/// Asks a process what refers to its largest arrays, and waits for the answer. Throws CommandError
/// if there is none in this time, and AttachError.
Answer ask(const StatisticsReader& process, std::chrono::nanoseconds patience);

}  // namespace tensorpool::command::holders
