#pragma once

/// @file
/// Fills TopData from processes.

#include <future>
#include <set>

#include "common/settings.hpp"
#include "top/top_data.hpp"
#include "top/top_state.hpp"

namespace tensorpool::command {

/// Reads heap profiles and names their frames without blocking the screen: the first look into the
/// symbols of a large library takes seconds. Names one profile at a time, in a thread. The
/// destructor waits for that thread.
class SiteWatch {
public:
    /// Reads the profile of a process and returns it with names, if these are found at once.
    /// Otherwise returns nothing, and a later call returns it. Throws AttachError.
    std::optional<profile::NamedProfile> update(StatisticsReader& reader);

private:
    void start(HeapProfile profile);

    std::unique_ptr<profile::ProfileNames> names_;
    std::uint64_t process_ = 0;  ///< the names are of this process
    std::future<profile::NamedProfile> naming_;
};

class TopWatch {
public:
    /// Follows the process of --pid, or the process of --name and then the next of that name.
    explicit TopWatch(const Settings& settings);

    const TopData& data() const noexcept { return data_; }
    /// Reads the chosen process, and what else the view shows.
    void update(View view);
    /// Chooses a process; 0: none.
    void choose(std::uint64_t process);
    void reset_highest() { command::reset_highest(data_); }

private:
    void read_all();
    void read_chosen();
    void read_sites();
    void find_awaited();
    bool read(WatchedProcess& watched, StatisticsReader& reader);

    TopData data_;
    std::map<std::uint64_t, StatisticsReader> readers_;  ///< of data_.processes
    std::unique_ptr<StatisticsReader> chosen_;
    SiteWatch sites_;
    std::uint64_t last_entry_ = 0;
};

}  // namespace tensorpool::command
