#pragma once

/// @file
/// The data that `top` shows, and the highest values it has seen.

#include <tensorpool/statistics_reader.hpp>

#include "formats/profile/named_profile.hpp"

namespace tensorpool::command {

/// The highest values that this reader has seen. They are kept here, because readers never write to
/// the segment.
class Highest {
public:
    void record(const std::string& key, std::uint64_t value) {
        Seen& seen = seen_[key];
        seen.last = value;
        seen.highest = std::max(seen.highest, value);
    }
    /// Makes the last value of each key its highest.
    void reset() {
        for (auto& [key, seen] : seen_) seen.highest = seen.last;
    }
    /// Returns the highest value since the last reset.
    std::uint64_t get(const std::string& key) const {
        const auto found = seen_.find(key);
        return found == seen_.end() ? 0 : found->second.highest;
    }

private:
    struct Seen {
        std::uint64_t last = 0;
        std::uint64_t highest = 0;
    };
    std::map<std::string, Seen> seen_;
};

/// The last two snapshots of a process.
struct WatchedProcess {
    ObservedProcess process;
    std::optional<ProcessSnapshot> before;
    std::optional<ProcessSnapshot> now;  ///< nothing if it cannot be read
    bool ended = false;                  ///< `now` holds its last statistics
};

/// The heap profile of a process, and what its sites held before.
struct WatchedSites {
    profile::NamedProfile now;
    /// The live bytes of each site, by id, in the first profile or when `r` was pressed.
    std::unordered_map<std::uint64_t, std::uint64_t> before;
};

struct TopData {
    std::vector<WatchedProcess> processes;  ///< the running processes
    std::optional<WatchedProcess> chosen;
    std::optional<WatchedSites> sites;   ///< of the chosen process; nothing until they have names
    std::vector<TimelineEntry> entries;  ///< of the chosen process, oldest first
    std::string awaited;                 ///< --name while waiting for another process; otherwise ""
    Highest highest;
};

// Keys of `highest`; those of records are made by `record_key`.
std::string process_key(std::uint64_t process);
std::string bucket_key(std::uint64_t pool, unsigned bucket);

/// Returns the records of all kinds, including pools and threads.
std::vector<RecordGroup> groups_of(const ProcessSnapshot& snapshot);

/// Adds a new snapshot: the last becomes the previous one, and the highest values are updated.
void add_snapshot(WatchedProcess& watched, ProcessSnapshot snapshot, Highest& highest);

/// Makes `profile` the present one. The first one is also the one that changes are counted from.
void add_profile(TopData& data, profile::NamedProfile profile);
/// Counts changes from now on, and makes the last values the highest ones.
void reset_highest(TopData& data);

}  // namespace tensorpool::command
