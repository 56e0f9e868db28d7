#pragma once

/// @file
/// Reads heap profiles and names their frames without blocking the screen: the first look into the
/// symbols of a large library takes seconds.

#include <future>
#include <memory>
#include <optional>

#include <tensorpool/statistics_reader.hpp>

#include "formats/profile/named_profile.hpp"

namespace tensorpool::command {

/// Names one profile at a time, in a thread. The destructor waits for that thread.
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

}  // namespace tensorpool::command
