#include "common/stash_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/cells.hpp"

namespace tensorpool::command {
namespace {

Cell seconds_cell(std::uint64_t nanoseconds) {
    const double seconds = static_cast<double>(nanoseconds) / 1e9;
    return {fmt::format("{:.2f}", seconds), seconds};
}

Cell budget_cell(const std::vector<BudgetStatistics>& budgets, std::uint64_t number) {
    if (number == 0) return text_cell("none");
    const auto found = std::ranges::find(budgets, number, &BudgetStatistics::id);
    return text_cell(found != budgets.end() ? found->name : "ended");
}

}  // namespace

Table stash_table(const ProcessSnapshot& snapshot, Sizes sizes) {
    Table table;
    table.columns = {
        text_column("AT REST", 14), text_column("KIND", 7),  count_column("COUNT"),
        size_column("IN MEM"),      size_column("RESTING"),  size_column("TAKES"),
        part_column("RATIO"),       count_column("MISSES"),  size_column("IN FILES"),
        count_column("RESTORES"),   count_column("FAILED"),  {"STASH s", Side::right, 7},
        {"BACK s", Side::right, 7}, text_column("BUDGET", 8)};
    for (const StashStatistics& stash : snapshot.stashes) {
        table.rows.push_back(
            {text_cell(stash.name), text_cell(to_string(stash.kind)), count_cell(stash.tensors),
             size_cell(stash.memory_bytes, sizes), size_cell(stash.stashed_bytes, sizes),
             size_cell(stash.bytes_at_rest(), sizes),
             part_cell(stash.bytes_at_rest(), stash.stashed_bytes), count_cell(stash.misses),
             size_cell(stash.spilled_bytes, sizes), count_cell(stash.restores),
             count_cell(stash.failures), seconds_cell(stash.stash_ns),
             seconds_cell(stash.restore_ns), budget_cell(snapshot.budgets, stash.budget)});
        table.keys.push_back(std::to_string(stash.id));
    }
    return table;
}

}  // namespace tensorpool::command
