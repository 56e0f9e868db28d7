#pragma once

/// @file
/// The past of a process: that of each pool it has now.

#include <cstdint>
#include <map>
#include <string>
#include <tensorpool/process_snapshot.hpp>

#include "serve/watch/figure_history.hpp"
#include "serve/watch/pool_series.hpp"

namespace tensorpool::command::serve {

using PoolSample = Sample<series_count>;
static_assert(sizeof(PoolSample) == 64, "16 numbers of 4 bytes, with the time");
using ProcessSample = Sample<1>;  ///< its page faults a second

/// One thread's at a time.
class History {
public:
    /// Snapshots come in the order of their times. Of pools that it does not have the past is
    /// forgotten.
    void add(const ProcessSnapshot& snapshot, const ProcessRates& rates);
    /// The event `history`: all samples taken before `time_ns` of the monotonic clock.
    std::string to_json(std::uint64_t process, std::uint64_t time_ns) const;

private:
    struct Pool {
        std::string name;
        FigureHistory<series_count> history;
    };

    void forget_missing(const ProcessSnapshot& snapshot);

    std::map<std::uint64_t, Pool> pools_;  ///< by `id`
    FigureHistory<1> faults_;
    std::uint64_t start_ns_ = 0;       ///< of the monotonic clock
    std::int64_t unix_offset_ns_ = 0;  ///< from that to the time of day, as it was last
};

}  // namespace tensorpool::command::serve
