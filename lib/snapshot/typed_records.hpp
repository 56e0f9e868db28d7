#pragma once

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "limits/budget_table.hpp"
#include "plan/planned_table.hpp"
#include "read/read_records.hpp"
#include "rest/stash_table.hpp"
#include "statistics/records/record_values.hpp"
#include "statistics/scopes/scope_table.hpp"

/// Public structures of statistics from records of any kind, and back, as the tables of the layers
/// that own the kinds say; and the tables of a process as a whole and of a thread of a pool, whose
/// values are computed or come from the system.
namespace tensorpool::snapshots {

namespace processes {

using enum statistics::MetricKind;
using statistics::Family;
using statistics::Field;

inline constexpr Field fields[] = {
    {"committed_bytes", "bytes", gauge,
     "Bytes committed by all pools, arenas, scratches and planned arenas of the process.",
     "tensorpool_process_committed_bytes"},
    {"minor_faults", "faults", total,
     "Minor page faults of the whole process, as the system counts them.",
     "tensorpool_process_minor_faults_total"},
    {"resident_bytes", "bytes", gauge,
     "Bytes of the whole process that are in memory, as the system counts them.",
     "tensorpool_process_resident_bytes"},
    {"failed_misuse", "checks", total, "Failed checks of an invalid pointer or size."},
    {"failed_leaks", "checks", total,
     "Failed checks of blocks still in use when a pool with checks was destroyed."},
    {"failed_threads", "checks", total,
     "Failed checks of an object used by a thread that does not own it."},
    {"failed_scope_orders", "checks", total, "Statistics scopes that ended out of order."},
};
inline constexpr Family families[] = {
    divided("tensorpool_checks_failed_total", total, "Failed checks.", "kind",
            "misuse|leak|thread|scope_order", {3, 4, 5, 6}),
};
inline constexpr statistics::RecordTable table = {
    .name = "processes", .of = "process", .fields = fields, .families = families};

inline std::array<std::uint64_t, std::size(fields)> values_of(
    const ProcessSnapshot& process) noexcept {
    return {process.committed_bytes,    process.minor_faults, process.resident_bytes,
            process.failed_misuse,      process.failed_leaks, process.failed_threads,
            process.failed_scope_orders};
}

}  // namespace processes

namespace threads {

using enum statistics::MetricKind;
using statistics::Column;

inline constexpr statistics::Field fields[] = {
    {"thread", "number", gauge,
     "System's number of the thread; 0 for threads that ended or have no cache."},
    {"pool", "number", gauge, "Number of the pool."},
    {"allocations", "calls", total, "Blocks that the thread allocated."},
    {"deallocations", "calls", total, "Blocks that the thread freed."},
    {"parked_bytes", "bytes", gauge, "Free bytes in the thread's magazines."},
};
inline constexpr Column columns[] = {
    {.title = "THREAD", .show = Column::name, .width = 15},
    {.title = "TID", .show = Column::number, .value = 0, .width = 7},
    {.title = "POOL", .show = Column::reference, .value = 1, .of_kind = "pools", .width = 12},
    {"ALLOC/s", Column::rate, 2},
    {"FREE/s", Column::rate, 3},
    {"PARKED", Column::size, 4},
    {"HIGHEST", Column::highest, 4},
    {"ALLOCS", Column::count, 2},
    {"FREES", Column::count, 3},
};
inline constexpr statistics::RecordTable table = {
    .name = "threads", .of = "thread", .title = "threads", .fields = fields, .columns = columns};

inline std::array<std::uint64_t, std::size(fields)> values_of(
    const ThreadStatistics& thread) noexcept {
    return {thread.thread, thread.pool, thread.allocations, thread.deallocations,
            thread.parked_bytes};
}

}  // namespace threads

/// The record whose statistics a public structure holds; for `table_of`, which needs its type only.
statistics::ArenaRecord record_for(const ArenaStatistics&);
statistics::DeviceRecord record_for(const DeviceStatistics&);
statistics::DeviceStreamRecord record_for(const DeviceStreamStatistics&);
statistics::PlannedRecord record_for(const PlannedArenaStatistics&);
statistics::BudgetRecord record_for(const BudgetStatistics&);
statistics::StashRecord record_for(const StashStatistics&);
statistics::ScopeRecord record_for(const ScopeStatistics&);

template <class Statistics>
const statistics::RecordTable& table_of() noexcept {
    return *decltype(record_for(Statistics()))::layout.table;
}
/// Returns a pointer to a table that is a constant.
inline std::shared_ptr<const statistics::RecordTable> share(
    const statistics::RecordTable& table) noexcept {
    return {std::shared_ptr<void>(), &table};
}

template <std::size_t bytes>
void copy_text(char (&to)[bytes], std::string_view from) noexcept {
    to[from.copy(to, bytes - 1)] = '\0';
}

/// Returns the structures of the records of a group. Values are found by their names, so a process
/// of another build may have more of them, or fewer, which are then 0.
template <class Statistics>
std::vector<Statistics> typed(const RecordGroup& group) {
    const statistics::RecordTable& ours = table_of<Statistics>();
    const std::span<const statistics::Field> theirs = group.table->fields;
    std::vector<std::size_t> indices;
    for (const statistics::Field& field : ours.shown_fields()) {
        const auto found = std::ranges::find_if(theirs, [&](const statistics::Field& their) {
            return their.name == field.name.view();
        });
        indices.push_back(static_cast<std::size_t>(found - theirs.begin()));
    }
    const std::size_t choices = statistics::count_of_values(ours.choice.values);
    std::vector<Statistics> all;
    for (const RecordGroup::Record& record : group.records) {
        Statistics& one = all.emplace_back();
        auto* to = statistics::first_value(one);
        for (const std::size_t index : indices) {
            *to++ = index < theirs.size() ? record.values[index] : 0;
        }
        if constexpr (requires { one.name; }) copy_text(one.name, record.name);
        if constexpr (requires { one.device[0]; }) copy_text(one.device, record.text);
        statistics::set_choice(one, std::min<std::size_t>(record.choice, choices - 1));
    }
    return all;
}

template <class Statistics>
RecordGroup::Record record_of(const Statistics& one) {
    std::uint64_t id = 0;
    const char* name = "";
    if constexpr (requires { one.id; }) id = one.id;
    if constexpr (requires { one.name; }) name = one.name;
    RecordGroup::Record record =
        read::make_record(table_of<Statistics>(), id, name,
                          {statistics::first_value(one), statistics::value_count<Statistics>()});
    if constexpr (requires { one.device[0]; }) record.text = one.device;
    if constexpr (requires { one.waiting_ns; }) record.text = to_text(one);
    if constexpr (requires { one.kind; }) {
        record.choice = static_cast<unsigned>(one.kind);
    } else if constexpr (requires { one.state; }) {
        record.choice = static_cast<unsigned>(one.state);
    }
    return record;
}

template <class Statistics>
RecordGroup group_of(const std::vector<Statistics>& all, std::string_view name = {}) {
    RecordGroup group;
    group.table = share(table_of<Statistics>());
    group.name = name.empty() ? group.table->name : name;
    for (const Statistics& one : all) group.records.push_back(record_of(one));
    return group;
}

}  // namespace tensorpool::snapshots
