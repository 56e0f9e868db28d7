#include "top/top_data.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "common/record_table.hpp"
#include "common/totals.hpp"

namespace tensorpool::command {
namespace {

void record_buckets(const PoolStatistics& pool, Highest& highest) {
    for (unsigned bucket = 0; bucket < pool.buckets.size(); ++bucket) {
        highest.record(bucket_key(pool.id, bucket), pool.buckets[bucket].in_use_bytes);
    }
    highest.record(bucket_key(pool.id, detail::bucket_count), pool.large.in_use_bytes);
}

/// Records what a column shows the highest value of.
void record_highest(const std::vector<RecordGroup>& groups, const RecordGroup& group,
                    Highest& highest) {
    const RecordGrid grid = to_grid(groups, group);
    for (std::size_t i = 0; i < grid.columns.size(); ++i) {
        if (grid.columns[i].show != RecordColumn::Show::highest) continue;
        for (const RecordRow& row : grid.rows) {
            highest.record(record_key(grid.of, group.records[row.record].id), row.cells[i].number);
        }
    }
}

void count_from_now(WatchedSites& sites) {
    sites.before.clear();
    for (const ProfileSite& site : sites.now.profile.sites) {
        sites.before[site.id] = site.live_bytes;
    }
}

}  // namespace

std::string process_key(std::uint64_t process) {
    return fmt::format("process {}", process);
}

std::string bucket_key(std::uint64_t pool, unsigned bucket) {
    return fmt::format("bucket {} {}", pool, bucket);
}

std::vector<RecordGroup> groups_of(const ProcessSnapshot& snapshot) {
    std::vector<RecordGroup> groups = pool_groups(snapshot);
    std::ranges::move(record_groups(snapshot), std::back_inserter(groups));
    return groups;
}

void add_snapshot(WatchedProcess& watched, ProcessSnapshot snapshot, Highest& highest) {
    highest.record(process_key(snapshot.process), add_up(snapshot).in_use_bytes);
    for (const PoolStatistics& pool : snapshot.pools) record_buckets(pool, highest);
    const std::vector<RecordGroup> groups = groups_of(snapshot);
    for (const RecordGroup& group : groups) record_highest(groups, group, highest);
    watched.before = std::exchange(watched.now, std::move(snapshot));
}

void add_profile(TopData& data, profile::NamedProfile profile) {
    if (data.sites) {
        data.sites->now = std::move(profile);
    } else {
        data.sites = {std::move(profile), {}};
        count_from_now(*data.sites);
    }
}

void reset_highest(TopData& data) {
    data.highest.reset();
    if (data.sites) count_from_now(*data.sites);
}

}  // namespace tensorpool::command
