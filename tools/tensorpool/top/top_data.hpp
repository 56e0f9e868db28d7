#pragma once

/// @file
/// The data that `top` shows, and the highest values it has seen.

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include <tensorpool/statistics_reader.hpp>

#include "common/record_table.hpp"
#include "common/totals.hpp"
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

inline std::string bucket_key(std::uint64_t pool, unsigned bucket) {
    return fmt::format("bucket {} {}", pool, bucket);
}

inline void record_buckets(const PoolStatistics& pool, Highest& highest) {
    for (unsigned bucket = 0; bucket < pool.buckets.size(); ++bucket) {
        highest.record(bucket_key(pool.id, bucket), pool.buckets[bucket].in_use_bytes);
    }
    highest.record(bucket_key(pool.id, detail::bucket_count), pool.large.in_use_bytes);
}

/// Records what a column shows the highest value of.
inline void record_highest(const std::vector<RecordGroup>& groups, const RecordGroup& group,
                           Highest& highest) {
    const RecordGrid grid = to_grid(groups, group);
    for (std::size_t i = 0; i < grid.columns.size(); ++i) {
        if (grid.columns[i].show != RecordColumn::Show::highest) continue;
        for (const RecordRow& row : grid.rows) {
            highest.record(record_key(grid.of, group.records[row.record].id), row.cells[i].number);
        }
    }
}

inline void count_from_now(WatchedSites& sites) {
    sites.before.clear();
    for (const ProfileSite& site : sites.now.profile.sites) {
        sites.before[site.id] = site.live_bytes;
    }
}

// Keys of `highest`; those of records are made by `record_key`.
inline std::string process_key(std::uint64_t process) {
    return fmt::format("process {}", process);
}

/// Returns the records of all kinds, including pools and threads.
inline std::vector<RecordGroup> groups_of(const ProcessSnapshot& snapshot) {
    std::vector<RecordGroup> groups = pool_groups(snapshot);
    std::ranges::move(record_groups(snapshot), std::back_inserter(groups));
    return groups;
}

/// Adds a new snapshot: the last becomes the previous one, and the highest values are updated.
inline void add_snapshot(WatchedProcess& watched, ProcessSnapshot snapshot, Highest& highest) {
    highest.record(process_key(snapshot.process), add_up(snapshot).in_use_bytes);
    for (const PoolStatistics& pool : snapshot.pools) record_buckets(pool, highest);
    const std::vector<RecordGroup> groups = groups_of(snapshot);
    for (const RecordGroup& group : groups) record_highest(groups, group, highest);
    watched.before = std::exchange(watched.now, std::move(snapshot));
}

/// Makes `profile` the present one. The first one is also the one that changes are counted from.
inline void add_profile(TopData& data, profile::NamedProfile profile) {
    if (data.sites) {
        data.sites->now = std::move(profile);
    } else {
        data.sites = {std::move(profile), {}};
        count_from_now(*data.sites);
    }
}

/// Counts changes from now on, and makes the last values the highest ones.
inline void reset_highest(TopData& data) {
    data.highest.reset();
    if (data.sites) count_from_now(*data.sites);
}

}  // namespace tensorpool::command
