#pragma once

/// @file
/// Which operator needs how much scratch.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// What is known of an operator: of all scopes with its name, on all threads, that have ended.
struct OperatorScratch {
    std::string name;
    std::uint64_t calls = 0;
    std::size_t peak_bytes = 0;  ///< the most that one scope had in use, scopes inside it included
    /// Times that a scratch got memory for it, as it began or amid it, and not for a scope inside
    /// it; the first half mebibyte of a thread and the joining of chunks are nobody's.
    std::uint64_t growths = 0;
    std::size_t grown_bytes = 0;  ///< total of that
};

/// The operators, the highest peak first.
struct ScratchReport {
    std::vector<OperatorScratch> operators;
};

/// Any thread.
TENSORPOOL_API ScratchReport scratch_report();

/// One JSON object, the names those of the fields above.
TENSORPOOL_API std::string to_json(const ScratchReport& report);
/// A table for people. Ends with a newline.
TENSORPOOL_API std::string to_text(const ScratchReport& report);

}  // namespace tensorpool
