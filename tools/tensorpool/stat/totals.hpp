#pragma once

/// @file
/// A process as a whole: its pools, arenas of all kinds and scratches added up; and its device
/// allocators, whose memory is another.

#include <cstdint>
#include <string>

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool::command {

struct Totals {
    std::uint64_t in_use_bytes = 0;    ///< of blocks, and what arenas and scratches handed out
    std::uint64_t capacity_bytes = 0;  ///< committed
    std::uint64_t peak_bytes = 0;      ///< each one's own peak, which need not have been together
    std::uint64_t limit_bytes = 0;     ///< of all together; 0 where one of them has none
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t cache_hits = 0;
    std::uint64_t failures = 0;               ///< requests that could not be met
    std::uint64_t checks = 0;                 ///< that fired
    std::uint64_t device_in_use_bytes = 0;    ///< of blocks of device allocators
    std::uint64_t device_capacity_bytes = 0;  ///< of their slabs
};
Totals add_up(const ProcessSnapshot& snapshot);

/// A total under its name in JSON.
struct TotalMetric {
    const char* name;
    std::uint64_t Totals::*value;
    bool is_memory = true;  ///< so `ls` shows it too
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

/// What all pools of a process did, a second.
struct TotalRates {
    double allocations = 0;
    double deallocations = 0;
    double allocated_bytes = 0;
    double failures = 0;
    double faults = 0;
    double hit_ratio = 1;  ///< of the allocations meanwhile; 1 without any
};
TotalRates add_up(const ProcessRates& rates);

/// `part` of `whole`, 0 where that is nothing.
double ratio(std::uint64_t part, std::uint64_t whole);

/// A name from a process, or a number in its place, fit to be shown.
std::string shown_name(const std::string& name, std::uint64_t process);

/// Leaves only the pools of this name; arenas, scratches and threads of others go too.
void keep_pool(ProcessSnapshot& snapshot, const std::string& pool);

}  // namespace tensorpool::command
