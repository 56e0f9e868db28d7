#include <tensorpool/metrics.hpp>

#include "platform/platform.hpp"
#include "read/record_families.hpp"
#include "snapshot/typed_records.hpp"
#include "statistics/sums/pool_tables.hpp"
#include "statistics/sums/steady_sources.hpp"

namespace tensorpool {
namespace {

using namespace read;
using base::valid_utf8;
using statistics::MetricKind;
using statistics::RecordTable;

constexpr const char* word_of(MetricKind kind) noexcept {
    if (kind == MetricKind::gauge) return "gauge";
    return kind == MetricKind::total ? "total" : "peak";
}

/// All tables, in the order of the manual.
constexpr const RecordTable* tables[] = {
    &snapshots::processes::table,       &statistics::pools::table,   &statistics::buckets::table,
    &statistics::large_blocks::table,   &statistics::arenas::table,  &statistics::devices::table,
    &statistics::planned_arenas::table, &statistics::budgets::table, &statistics::stashes::table,
    &statistics::scopes::table,         &snapshots::threads::table};

MetricDescription describe(const RecordTable& table, const statistics::Field& field) {
    return {table.of.text,       field.name.text,       field.unit.text,   word_of(field.kind),
            field.sentence.text, field.prometheus.text, field.pytorch.text};
}

/// Returns a pool with the sums that metrics divide it by.
RecordGroup::Record record_of(const PoolStatistics& pool) {
    namespace pools = statistics::pools;
    RecordGroup::Record record =
        make_record(pools::table, pool.id, pool.name, {&pool.id, pools::table.shown()});
    auto to = record.values.begin() + pools::first_derived;
    to = std::ranges::copy(pool.failures_by_limit, to).out;
    std::ranges::copy(statistics::sources_of(pool), to);
    return record;
}

struct Process {
    explicit Process(const ProcessSnapshot& from)
        : snapshot(from),
          labels{{"pid", std::to_string(from.process)},
                 {"process", valid_utf8(from.process_name.c_str())}},
          groups(record_groups(from)) {
        groups.insert(groups.begin(), pool_groups(from).front());
        const auto values = snapshots::processes::values_of(from);
        itself.table = snapshots::share(snapshots::processes::table);
        itself.records = {make_record(*itself.table, 0, "", values)};
    }

    const ProcessSnapshot& snapshot;
    Labels labels;
    std::vector<RecordGroup> groups;
    RecordGroup itself;
};

void add_build(FamilyList& families, const Process& process) {
    Labels labels = process.labels;
    labels.emplace_back("version", valid_utf8(process.snapshot.library_version.c_str()));
    families
        .get("tensorpool_build_info", "Version of tensorpool that the process uses; always 1.",
             MetricFamily::Kind::gauge)
        .samples.push_back({std::move(labels), 1});
}

/// Returns the kinds of records of all processes, in the order in which they first occur. Arenas
/// and scratches are of one kind.
std::vector<std::string_view> kinds_of(const std::vector<Process>& processes) {
    std::vector<std::string_view> kinds;
    for (const Process& process : processes) {
        for (const RecordGroup& group : process.groups) {
            const std::string_view kind = group.table->name;
            if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
        }
    }
    return kinds;
}

void add_kind(FamilyList& families, const std::vector<Process>& processes, std::string_view kind) {
    for (const Process& process : processes) {
        UniqueNames names;
        for (const RecordGroup& group : process.groups) {
            if (group.table->name == kind) families.add(process.labels, group, names);
        }
    }
}

}  // namespace

std::vector<RecordGroup> pool_groups(const ProcessSnapshot& snapshot) {
    std::vector<RecordGroup> groups(2);
    groups[0].table = snapshots::share(statistics::pools::table);
    groups[1].table = snapshots::share(snapshots::threads::table);
    for (RecordGroup& group : groups) group.name = group.table->name;
    for (const PoolStatistics& pool : snapshot.pools) groups[0].records.push_back(record_of(pool));
    for (const ThreadStatistics& thread : snapshot.threads) {
        groups[1].records.push_back(
            make_record(*groups[1].table, thread.pool << 32 | thread.thread,
                        thread.thread == 0 ? "(ended)" : thread.name.c_str(),
                        snapshots::threads::values_of(thread)));
    }
    return groups;
}

std::span<const MetricDescription> describe_metrics() {
    static const auto all = [] {
        std::vector<MetricDescription> described;
        for (const RecordTable* const table : tables) {
            for (const statistics::Field& field : table->shown_fields()) {
                described.push_back(describe(*table, field));
            }
            if (table == &statistics::pools::table) {
                described.push_back(describe(*table, statistics::pools::failures_by_limit));
            }
        }
        return described;
    }();
    return all;
}

std::vector<MetricFamily> metric_families(const std::vector<ProcessSnapshot>& snapshots) {
    const std::vector<Process> processes(snapshots.begin(), snapshots.end());
    FamilyList families;
    for (const std::string_view kind : kinds_of(processes)) add_kind(families, processes, kind);
    for (const Process& process : processes) {
        UniqueNames names;
        families.add(process.labels, process.itself, names);
    }
    for (const Process& process : processes) add_build(families, process);
    return families.take();
}

std::string to_prometheus(const std::vector<ProcessSnapshot>& snapshots) {
    return to_prometheus(metric_families(snapshots));
}

std::string to_prometheus(const ProcessSnapshot& snapshot) {
    return to_prometheus(std::vector<ProcessSnapshot>{snapshot});
}

std::string to_prometheus(const PoolStatistics& statistics) {
    const platform::ProcessIdentity self = platform::identify_process();
    ProcessSnapshot snapshot;
    snapshot.process = self.number;
    snapshot.process_name = self.name;
    snapshot.pools = {statistics};
    const std::vector<Process> processes = {Process(snapshot)};
    FamilyList families;
    add_kind(families, processes, "pools");
    return to_prometheus(families.take());
}

}  // namespace tensorpool
