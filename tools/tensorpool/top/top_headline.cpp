#include "top/top_headline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/printable.hpp"
#include "common/target.hpp"
#include "common/totals.hpp"
#include "common/units.hpp"

namespace tensorpool::command {
namespace {

std::vector<ScreenLine> headline_of_all(const TopData& data, Sizes sizes) {
    std::uint64_t in_use = 0;
    std::uint64_t capacity = 0;
    for (const WatchedProcess& watched : data.processes) {
        if (!watched.now) continue;
        const Totals totals = add_up(*watched.now);
        in_use += totals.in_use_bytes;
        capacity += totals.capacity_bytes;
    }
    return {{fmt::format("tensorpool top: {} {} with pools", data.processes.size(),
                         data.processes.size() == 1 ? "process" : "processes"),
             Style::title},
            {fmt::format("in use {}  capacity {}", format_size(in_use, sizes),
                         format_size(capacity, sizes)),
             Style::plain}};
}

std::string memory_line(const TopData& data, const Totals& totals, Sizes sizes) {
    const std::uint64_t process = data.chosen->process.process;
    return fmt::format("in use {}  highest {}  capacity {}  limit {}  util {}",
                       format_size(totals.in_use_bytes, sizes),
                       format_size(data.highest.get(process_key(process)), sizes),
                       format_size(totals.capacity_bytes, sizes),
                       totals.limit_bytes == 0 ? "none" : format_size(totals.limit_bytes, sizes),
                       format_part(ratio(totals.in_use_bytes, totals.capacity_bytes)));
}

std::string rates_line(const WatchedProcess& watched, const Totals& totals) {
    TotalRates rates;
    if (watched.before) rates = add_up(difference(*watched.before, *watched.now));
    return fmt::format("allocs/s {}  frees/s {}  hits {}  faults/s {}  failed {}  checks {}",
                       format_count(rates.allocations), format_count(rates.deallocations),
                       format_part(rates.hit_ratio), format_count(rates.faults),
                       format_count(static_cast<double>(totals.failures)),
                       format_count(static_cast<double>(totals.checks)));
}

std::string left_out_text(const LeftOut& left_out) {
    return fmt::format(
        "Without a record in the segment, counted together as \"other\": "
        "{} pools, {} arenas, {} threads, {} scopes, {} devices, {} streams, {} planned arenas, "
        "{} budgets, {} names at rest.",
        left_out.pools, left_out.arenas, left_out.slots, left_out.scopes, left_out.devices,
        left_out.device_streams, left_out.planned, left_out.budgets, left_out.stashes);
}

}  // namespace

std::vector<ScreenLine> headline(const TopData& data, const TopState& state) {
    const Sizes sizes = state.plain_bytes ? Sizes::bytes : Sizes::iec;
    if (state.view == View::processes) return headline_of_all(data, sizes);
    if (!data.chosen) return {{"tensorpool top: no process", Style::title}};
    const WatchedProcess& watched = *data.chosen;
    const std::string name = shown_name(watched.process.name, watched.process.process);
    std::vector<ScreenLine> lines = {
        {fmt::format("{} ({}){}", name, watched.process.process, watched.ended ? ", ended" : ""),
         Style::title}};
    if (!watched.now) return lines;
    const Totals totals = add_up(*watched.now);
    lines.front().text += ", tensorpool " + printable(watched.now->library_version);
    lines.push_back({memory_line(data, totals, sizes), Style::plain});
    lines.push_back({rates_line(watched, totals), Style::plain});
    return lines;
}

std::vector<std::string> notes_of(const TopData& data) {
    std::vector<std::string> notes;
    const WatchedProcess& watched = *data.chosen;
    if (watched.ended) {
        notes.push_back(
            fmt::format("The process {} has ended{} {}", watched.process.process,
                        watched.now ? ": these are its last statistics." : ".",
                        data.awaited.empty() ? "Press o for the others." : awaited_text(data)));
    }
    if (!watched.now) return notes;
    const LeftOut& out = watched.now->left_out;
    if (out.pools + out.arenas + out.slots + out.scopes + out.devices + out.device_streams +
            out.planned + out.budgets + out.stashes >
        0) {
        notes.push_back(left_out_text(out));
    }
    if (!watched.now->consistent) {
        notes.push_back("Pools or threads change constantly: values may be inconsistent.");
    }
    return notes;
}

std::string unreadable_text(const WatchedProcess& watched) {
    return fmt::format(
        "{} ({}) {}", watched.process.process,
        shown_name(watched.process.name, watched.process.process),
        watched.ended ? "has ended." : "cannot be read: " + printable(watched.process.problem));
}

std::string awaited_text(const TopData& data) {
    std::vector<ObservedProcess> running;
    for (const WatchedProcess& watched : data.processes) {
        if (watched.now && !watched.ended) running.push_back(watched.process);
    }
    const std::string name = printable(data.awaited);
    if (find_by_name(running, data.awaited).size() < 2) {
        return fmt::format("Waiting for a process named {}.", name);
    }
    return fmt::format("Several processes match the name {}: press Enter on one of them.", name);
}

std::string record_text(const TopData& data, const TopState& state) {
    const ViewInfo& view = info_of(state.view);
    if (!data.chosen || !data.chosen->now) return "";
    for (const RecordGroup& group : groups_of(*data.chosen->now)) {
        if (std::ranges::find(view.groups, group.name) == view.groups.end()) continue;
        const auto found = std::ranges::find(group.records, state.record, &RecordGroup::Record::id);
        if (found == group.records.end()) continue;
        return fmt::format("{}{}; {} for the others", printable(found->name),
                           found->text.empty() ? "" : " of " + printable(found->text), view.key);
    }
    return fmt::format("a record that was destroyed; {} for the others", view.key);
}

std::string pool_text(const TopData& data, std::uint64_t pool) {
    if (pool == 0 || !data.chosen || !data.chosen->now) return "all pools";
    const auto& pools = data.chosen->now->pools;
    const auto found = std::ranges::find_if(pools, [&](const auto& p) { return p.id == pool; });
    return found == pools.end() ? "a pool that was destroyed" : "pool " + printable(found->name);
}

}  // namespace tensorpool::command
