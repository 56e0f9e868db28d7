#include "explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tensorpool::command::explain {
namespace {

using Resident = std::map<MappingKind, std::uint64_t>;

Resident resident_by_kind(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings) {
    const Range pools{snapshot.pool_addresses.begin, snapshot.pool_addresses.bytes};
    const Range page_map{snapshot.page_map.begin, snapshot.page_map.bytes};
    Resident resident;
    for (std::size_t i = 0; i != mappings.size(); ++i) {
        resident[kind_of(mappings, i, pools, page_map)] += mappings[i].resident_bytes;
    }
    return resident;
}

/// Divides the resident memory of anonymous mappings: parts of known size first, then the rest.
class AnonymousMemory {
public:
    AnonymousMemory(std::uint64_t resident, std::vector<Row>& rows)
        : left_(resident), rows_(rows) {}

    /// Takes `bytes` for a row, or what is left. Returns what it took.
    std::uint64_t take(std::uint64_t bytes) {
        const std::uint64_t taken = std::min(bytes, left_);
        left_ -= taken;
        return taken;
    }

    /// An arena was touched up to its highest use, or up to what it has now.
    void add_arena(const ArenaStatistics& arena, const char* kind, const char* trim) {
        const std::uint64_t touched =
            std::min(arena.capacity_bytes, std::max(arena.peak_used_bytes, arena.used_bytes));
        const std::uint64_t used = take(std::min(arena.used_bytes, touched));
        const std::uint64_t unused = take(touched - std::min(touched, arena.used_bytes));
        rows_.push_back({fmt::format("{} '{}': in use", kind, arena.name), used});
        rows_.push_back({fmt::format("{} '{}': touched before, now unused", kind, arena.name),
                         unused, unused, unused == 0 ? "" : trim});
    }

private:
    std::uint64_t left_;
    std::vector<Row>& rows_;
};

}  // namespace

Explanation explain(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings) {
    Resident resident = resident_by_kind(snapshot, mappings);
    Explanation result{.process = snapshot.process, .name = snapshot.process_name};
    for (const auto& [kind, bytes] : resident) result.resident_bytes += bytes;
    std::vector<Row>& rows = result.rows;
    rows = rows_of_pools(snapshot, resident[MappingKind::pools]);

    AnonymousMemory anonymous(resident[MappingKind::anonymous], rows);
    std::uint64_t records = 0;
    for (const PoolStatistics& pool : snapshot.pools) records += anonymous.take(pool.record_bytes);
    rows.push_back({"records of tensorpool",
                    records + resident[MappingKind::page_map] + resident[MappingKind::segment]});
    for (const ArenaStatistics& arena : snapshot.arenas) {
        if (arena.kind == ArenaStatistics::Kind::growing) {
            anonymous.add_arena(arena, "arena", "Arena::trim in the program");
        }
    }
    for (const ArenaStatistics& scratch : snapshot.scratches) {
        anonymous.add_arena(scratch, "scratch", "Scratch::trim in the program");
    }
    rows.push_back({"heap of the C library", resident[MappingKind::heap]});
    rows.push_back({"stacks of threads", resident[MappingKind::stack]});
    rows.push_back({"program, libraries and other files", resident[MappingKind::file]});
    rows.push_back({"memory shared with other processes", resident[MappingKind::shared]});
    rows.push_back({"memory of device drivers", resident[MappingKind::device]});
    rows.push_back({"other mappings, such as large blocks of malloc",
                    anonymous.take(resident[MappingKind::anonymous])});
    std::erase_if(rows, [](const Row& row) { return row.bytes == 0; });
    std::ranges::stable_sort(rows, std::ranges::greater(), &Row::bytes);
    return result;
}

}  // namespace tensorpool::command::explain
