#pragma once

/// @file
/// The totals of a process: its pools, arenas of all kinds and scratches, and separately its device
/// allocators, whose memory is distinct.

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

struct Totals {
    std::uint64_t in_use_bytes = 0;    ///< by blocks, arenas and scratches
    std::uint64_t capacity_bytes = 0;  ///< committed
    std::uint64_t peak_bytes = 0;      ///< sum of peaks, which may have occurred at different times
    std::uint64_t limit_bytes = 0;     ///< sum of limits; 0 if one has none
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t cache_hits = 0;
    std::uint64_t failures = 0;               ///< failed requests
    std::uint64_t checks = 0;                 ///< errors that checks found
    std::uint64_t device_in_use_bytes = 0;    ///< by blocks of device allocators
    std::uint64_t device_capacity_bytes = 0;  ///< slabs of device allocators
};
Totals add_up(const ProcessSnapshot& snapshot);

/// A total and its name in JSON.
struct TotalMetric {
    const char* name;
    std::uint64_t Totals::*value;
    bool is_memory = true;  ///< `ls` shows it too
};
inline constexpr TotalMetric total_metrics[] = {
    {"in_use_bytes", &Totals::in_use_bytes},
    {"capacity_bytes", &Totals::capacity_bytes},
    {"peak_in_use_bytes", &Totals::peak_bytes},
    {"limit_bytes", &Totals::limit_bytes},
    {"allocations", &Totals::allocations, false},
    {"deallocations", &Totals::deallocations, false},
    {"failures", &Totals::failures, false},
    {"checks", &Totals::checks, false},
    {"device_in_use_bytes", &Totals::device_in_use_bytes},
    {"device_capacity_bytes", &Totals::device_capacity_bytes},
};

/// The activity of all pools of a process, per second.
struct TotalRates {
    double allocations = 0;
    double deallocations = 0;
    double allocated_bytes = 0;
    double failures = 0;
    double faults = 0;
    double hit_ratio = 1;  ///< of the allocations in this time; 1 if there were none
};
TotalRates add_up(const ProcessRates& rates);

/// Returns `part` / `whole`, or 0 if `whole` is 0.
double ratio(std::uint64_t part, std::uint64_t whole);

/// Returns the name of a process, made printable, or its id if it has no name.
std::string shown_name(const std::string& name, std::uint64_t process);

/// Keeps only the pools of this name. Removes arenas, scratches, and threads of other pools too.
void keep_pool(ProcessSnapshot& snapshot, const std::string& pool);

}  // namespace tensorpool::command
