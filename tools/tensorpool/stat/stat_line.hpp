#pragma once

/// @file
/// The lines of `stat`.

#include <string>

#include <tensorpool/process_snapshot.hpp>

#include "common/units.hpp"
#include "stat/totals.hpp"

namespace tensorpool::command {

/// One look at a process, and what it did since the look before.
struct StatLook {
    std::uint64_t process = 0;
    std::uint64_t time_unix_ns = 0;
    double seconds = 0;  ///< that the rates are over; 0: not known, so there are none
    Totals totals;
    TotalRates rates;
};

StatLook compare(const ProcessSnapshot& older, const ProcessSnapshot& newer);
/// The first look: on average since the process began, `age` seconds ago.
StatLook since_start(const ProcessSnapshot& snapshot, double age);

std::string stat_titles(Sizes sizes);
/// Within 80 columns, except for sizes in bytes.
std::string stat_line(const StatLook& look, Sizes sizes);
std::string stat_json(const StatLook& look);

/// A table for each device allocator, PyTorch's words beside ours. An empty line comes before
/// all but the first look. Without a newline at the end.
std::string stat_devices(const ProcessSnapshot& snapshot, Sizes sizes, bool first_look);
/// `{"process":...,"time_unix_ns":...,"devices":[...]}`, the elements as `to_json` of each.
std::string stat_devices_json(const ProcessSnapshot& snapshot);

/// A table of the planned arenas. An empty line comes before all but the first look.
std::string stat_planned(const ProcessSnapshot& snapshot, Sizes sizes, bool first_look);
/// `{"process":...,"time_unix_ns":...,"planned":[...]}`, the elements as `to_json` of each.
std::string stat_planned_json(const ProcessSnapshot& snapshot);

}  // namespace tensorpool::command
