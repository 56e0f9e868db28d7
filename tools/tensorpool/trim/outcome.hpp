#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/units.hpp"

namespace tensorpool::command::trim {

/// What a process had of memory.
struct Memory {
    std::uint64_t capacity_bytes = 0;  ///< of all its pools
    std::uint64_t resident_bytes = 0;  ///< of the process; 0: not known
};

/// What became of a request to trim.
struct Outcome {
    std::uint64_t process = 0;
    double seconds = 0;  ///< until the answer, or waited for it
    Memory before;
    Memory after;
    std::optional<std::uint64_t> trimmed_bytes;  ///< by its own word; nothing: no answer
};

std::string to_text(const Outcome& outcome, Sizes sizes);
std::string to_json(const Outcome& outcome);
/// Why there is no answer, and what helps; "" where there is one.
std::string complaint_of(const Outcome& outcome, Sizes sizes);

}  // namespace tensorpool::command::trim
