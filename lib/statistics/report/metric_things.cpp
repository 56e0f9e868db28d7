#include "statistics/report/metric_things.hpp"

#include <set>

#include "statistics/report/report_parts.hpp"

namespace tensorpool::statistics {
namespace {

/// Gives each thing of a process a name of its own: that of the second gets its number behind it.
class Names {
public:
    std::string claim(const char* name, std::uint64_t id) {
        std::string text = valid_utf8(name);
        if (!taken_.insert(text).second) {
            text += " #" + std::to_string(id);
            const std::string numbered = text;
            while (!taken_.insert(text).second) {
                text = numbered + '\'';
                text += std::to_string(++repeated_);
            }
        }
        return text;
    }

private:
    std::set<std::string> taken_;
    // Of numbers that come twice, as in a segment that was overwritten. One count for all names: so
    // thousands of the same take no longer than others.
    std::uint64_t repeated_ = 0;
};

Labels labels_of(const ProcessSnapshot& snapshot) {
    return {{"pid", std::to_string(snapshot.process)},
            {"process", valid_utf8(snapshot.process_name.c_str())}};
}

template <class Statistics>
void add(std::vector<MetricThing<Statistics>>& things, const Labels& process, const char* label,
         std::string name, const Statistics& figures) {
    Labels labels = process;
    labels.emplace_back(label, std::move(name));
    things.push_back({std::move(labels), &figures});
}

}  // namespace

MetricThings::MetricThings(const std::vector<ProcessSnapshot>& snapshots) {
    for (const ProcessSnapshot& snapshot : snapshots) {
        const Labels process = labels_of(snapshot);
        processes.push_back({process, &snapshot});
        Names pool_names;
        for (const PoolStatistics& pool : snapshot.pools) {
            add(pools, process, "pool", pool_names.claim(pool.name, pool.id), pool);
        }
        Names arena_names;
        for (const auto* group : {&snapshot.arenas, &snapshot.scratches}) {
            for (const ArenaStatistics& arena : *group) {
                add(arenas, process, "arena", arena_names.claim(arena.name, arena.id), arena);
            }
        }
        Names device_names;
        for (const DeviceStatistics& device : snapshot.devices) {
            Labels of_device = process;
            of_device.emplace_back("device", valid_utf8(device.device));
            add(devices, of_device, "allocator", device_names.claim(device.name, device.id),
                device);
        }
        Names planned_names;
        for (const PlannedArenaStatistics& arena : snapshot.planned) {
            add(planned, process, "planned", planned_names.claim(arena.name, arena.id), arena);
        }
        Names scope_names;
        std::uint64_t place = 0;
        for (const ScopeStatistics& scope : snapshot.scopes) {
            add(scopes, process, "scope", scope_names.claim(scope.name, ++place), scope);
        }
    }
}

}  // namespace tensorpool::statistics
