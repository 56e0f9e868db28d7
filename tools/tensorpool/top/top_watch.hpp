#pragma once

/// @file
/// Fills TopData from processes.

#include <map>
#include <memory>
#include <set>

#include <tensorpool/statistics_reader.hpp>

#include "common/settings.hpp"
#include "top/top_data.hpp"

namespace tensorpool::command {

class TopWatch {
public:
    /// Follows the process of --pid, or the process of --name and then the next of that name.
    explicit TopWatch(const Settings& settings);

    const TopData& data() const noexcept { return data_; }
    /// Reads the chosen process, and with `all` every other process too.
    void update(bool all);
    /// Chooses a process; 0: none.
    void choose(std::uint64_t process);
    void reset_highest() { data_.highest.reset(); }

private:
    void read_all();
    void read_chosen();
    void find_awaited();
    bool read(WatchedProcess& watched, StatisticsReader& reader);

    TopData data_;
    std::map<std::uint64_t, StatisticsReader> readers_;  ///< of data_.processes
    std::unique_ptr<StatisticsReader> chosen_;
    std::uint64_t last_entry_ = 0;
};

}  // namespace tensorpool::command
