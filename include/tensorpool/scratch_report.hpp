#pragma once

/// @file
/// The report of how much scratch each operator needs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The statistics of an operator: of all ended scopes with its name, on all threads.
struct OperatorScratch {
    /// The operator's name.
    std::string name;
    /// The number of scopes that ended.
    std::uint64_t calls = 0;
    /// The most bytes that one scope had in use, including scopes inside it.
    std::size_t peak_bytes = 0;
    /// How often a scratch grew for the operator: at its beginning or during it, but not for a
    /// scope inside it. A thread's first 512 KiB and the joining of chunks are not counted for any
    /// operator.
    std::uint64_t growths = 0;
    /// The total bytes of these growths.
    std::size_t grown_bytes = 0;
};

/// The scratch statistics of all operators.
struct ScratchReport {
    /// The operators, the highest peak first.
    std::vector<OperatorScratch> operators;
};

/// Returns the scratch statistics of all operators that ran so far. Any thread may call it.
TENSORPOOL_API ScratchReport scratch_report();

/// Returns one JSON object whose keys are the names of the fields of ScratchReport.
TENSORPOOL_API std::string to_json(const ScratchReport& report);
/// Returns a table for people that ends with a newline.
TENSORPOOL_API std::string to_text(const ScratchReport& report);

}  // namespace tensorpool
