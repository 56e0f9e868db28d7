#include "plan/planner/search_tables.hpp"

namespace tensorpool::planner {
namespace {

bool alive_at_once(const Buffer& a, const Buffer& b) noexcept {
    return a.begin < b.end && b.begin < a.end;
}

// False when there are too many.
bool add_neighbours(const Problem& problem, NumberLists& neighbours) {
    const auto count = static_cast<std::uint32_t>(problem.buffers.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        neighbours.begin_list();
        for (std::uint32_t j = 0; j < count; ++j) {
            if (i != j && alive_at_once(problem.buffers[i], problem.buffers[j])) neighbours.add(j);
        }
        if (neighbours.size() > SearchTables::max_neighbours) return false;
    }
    return true;
}

// False when there are too many.
bool add_members(const Problem& problem, SearchTables& tables) {
    tables.slice_bytes.assign(problem.slices, 0);
    for (std::uint32_t slice = 0; slice < problem.slices; ++slice) {
        tables.members.begin_list();
        for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
            const Buffer& buffer = problem.buffers[i];
            if (slice < buffer.begin || slice >= buffer.end) continue;
            tables.members.add(i);
            tables.slice_bytes[slice] += buffer.bytes;
        }
        if (tables.members.size() > SearchTables::max_members) return false;
    }
    return true;
}

}  // namespace

SearchTables make_search_tables(const Problem& problem) {
    SearchTables tables;
    if (problem.buffers.size() > SearchTables::max_buffers) return tables;
    if (!add_neighbours(problem, tables.neighbours)) return tables;
    tables.made = add_members(problem, tables);
    return tables;
}

}  // namespace tensorpool::planner
