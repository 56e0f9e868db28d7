#include <tensorpool/snapshot.hpp>

#include <tensorpool/process_snapshot.hpp>

#include "events/snapshot_sources.hpp"
#include "snapshot/typed_records.hpp"

namespace tensorpool {
namespace {

std::vector<RecordGroup> groups_of(const Snapshot& snapshot) {
    ProcessSnapshot process;
    process.arenas = snapshot.arenas;
    process.scratches = snapshot.scratches;
    process.devices = snapshot.devices;
    process.planned = snapshot.planned;
    process.budgets = snapshot.budgets;
    process.stashes = snapshot.stashes;
    process.scopes = snapshot.scopes;
    process.others = snapshot.others;
    return record_groups(process);
}

}  // namespace

Snapshot take_snapshot() {
    Snapshot snapshot = events::snapshot_sources().take();
    for (read::FoundRecords& found : read::read_own_records()) {
        const std::string& name = found.group.name;
        if (name == "budgets") {
            snapshot.budgets = snapshots::typed<BudgetStatistics>(found.group);
        } else if (name == "stashes") {
            snapshot.stashes = snapshots::typed<StashStatistics>(found.group);
        } else if (name == "scopes") {
            snapshot.scopes = snapshots::typed<ScopeStatistics>(found.group);
        } else if (!snapshots::has_structure(name)) {
            snapshot.others.push_back(std::move(found.group));
        }
    }
    return snapshot;
}

std::string to_json(const Snapshot& snapshot) {
    std::string out = "{\"version\":1,\"pools\":" + snapshots::array_of(snapshot.pools);
    for (const RecordGroup& group : groups_of(snapshot)) {
        out += ",\"" + group.name + "\":" + to_json(group);
    }
    return out + '}';
}

std::string to_text(const Snapshot& snapshot) {
    std::string out;
    for (const PoolStatistics& pool : snapshot.pools) out += to_text(pool);
    const std::vector<RecordGroup> groups = groups_of(snapshot);
    for (const DeviceStatistics& device : snapshot.devices) out += to_text(device);
    for (const PlannedArenaStatistics& arena : snapshot.planned) out += to_text(arena);
    for (const RecordGroup& group : groups) {
        if (group.name != "devices" && group.name != "planned") out += to_text(groups, group);
    }
    return out;
}

}  // namespace tensorpool
