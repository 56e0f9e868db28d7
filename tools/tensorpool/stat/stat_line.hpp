#pragma once

/// @file
/// The lines that `stat` prints.

#include "common/totals.hpp"
#include "common/units.hpp"

namespace tensorpool::command {

/// The state of a process, and its rates since the previous sample.
struct StatSample {
    std::uint64_t process = 0;
    std::uint64_t time_unix_ns = 0;
    double seconds = 0;  ///< the time span of the rates; 0: unknown, so there are no rates
    Totals totals;
    TotalRates rates;
};

StatSample compare(const ProcessSnapshot& older, const ProcessSnapshot& newer);
/// Makes the first sample: averages since the process began, `age` seconds ago.
StatSample since_start(const ProcessSnapshot& snapshot, double age);

std::string stat_titles(Sizes sizes);
/// Returns a line of at most 80 columns, except with sizes in bytes.
std::string stat_line(const StatSample& sample, Sizes sizes);
std::string stat_json(const StatSample& sample);

/// Returns a table for each device allocator, with PyTorch's names beside ours. An empty line
/// precedes all samples but the first. There is no newline at the end.
std::string stat_devices(const ProcessSnapshot& snapshot, Sizes sizes, bool is_first);
/// The names of groups of records, as in JSON.
using RecordNames = std::vector<std::string_view>;
/// Returns a table for each group that has records. An empty line precedes each table but the
/// first. Returns "" without records.
std::string stat_records(const ProcessSnapshot& snapshot, const RecordNames& names, Sizes sizes,
                         bool is_first);
/// Returns `{"process":...,"time_unix_ns":...,"planned":[...]}`, with a list for each group.
std::string stat_records_json(const ProcessSnapshot& snapshot, const RecordNames& names);

}  // namespace tensorpool::command
