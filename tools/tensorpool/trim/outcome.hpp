#pragma once

#include "common/units.hpp"

namespace tensorpool::command::trim {

struct Memory {
    std::uint64_t capacity_bytes = 0;  ///< of all its pools
    std::uint64_t resident_bytes = 0;  ///< of the process; 0: unknown
};

struct Outcome {
    std::uint64_t process = 0;
    double seconds = 0;  ///< until the answer, or the time waited for it
    Memory before = {};
    Memory after = {};
    std::optional<std::uint64_t> trimmed_bytes =
        {};  ///< as the process reported; nothing: no answer
};

std::string to_text(const Outcome& outcome, Sizes sizes);
std::string to_json(const Outcome& outcome);
/// Returns why there is no answer, and what helps; "" if there is one.
std::string complaint_of(const Outcome& outcome, Sizes sizes);

}  // namespace tensorpool::command::trim
