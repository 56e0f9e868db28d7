#include "common/planned_table.hpp"

#include "common/cells.hpp"

namespace tensorpool::command {
namespace {

/// A peak, or "-" if none has been measured yet.
Cell peak_cell(std::uint64_t bytes, Sizes sizes) {
    return bytes == 0 ? Cell{"-", 0} : size_cell(bytes, sizes);
}

/// By how much the plan exceeds the lower bound, or "-" if one of the two is unknown.
Cell above_cell(const PlannedArenaStatistics& arena) {
    if (arena.lower_bound_bytes == 0 || arena.plan_peak_bytes < arena.lower_bound_bytes) {
        return {"-", 0};
    }
    return part_cell(arena.plan_peak_bytes - arena.lower_bound_bytes, arena.lower_bound_bytes);
}

std::uint64_t missed(const PlannedArenaStatistics& arena) {
    return arena.too_large + arena.out_of_order + arena.unknown + arena.still_in_use;
}

}  // namespace

Table planned_table(const std::vector<PlannedArenaStatistics>& arenas, Sizes sizes) {
    Table table;
    table.columns = {text_column("NAME", 12),  text_column("STATE", 8),  size_column("BOUND"),
                     size_column("POOL"),      size_column("PLAN"),      part_column("ABOVE"),
                     count_column("SERVED"),   count_column("MISSED"),   size_column("IN USE"),
                     size_column("HELD"),      size_column("FROM POOL"), count_column("ITERS"),
                     count_column("BUFFERS"),  count_column("PLANS"),    count_column("LARGE"),
                     count_column("DISORDER"), count_column("UNKNOWN"),  count_column("BUSY")};
    for (const PlannedArenaStatistics& arena : arenas) {
        table.rows.push_back(
            {text_cell(arena.name), text_cell(to_string(arena.state)),
             size_cell(arena.lower_bound_bytes, sizes), peak_cell(arena.pool_peak_bytes, sizes),
             peak_cell(arena.plan_peak_bytes, sizes), above_cell(arena), count_cell(arena.served),
             count_cell(missed(arena)), size_cell(arena.in_use_bytes, sizes),
             size_cell(arena.capacity_bytes, sizes), size_cell(arena.pool_in_use_bytes, sizes),
             count_cell(arena.iterations), count_cell(arena.buffers), count_cell(arena.plans),
             count_cell(arena.too_large), count_cell(arena.out_of_order), count_cell(arena.unknown),
             count_cell(arena.still_in_use)});
        table.keys.push_back(std::to_string(arena.id));
    }
    return table;
}

}  // namespace tensorpool::command
