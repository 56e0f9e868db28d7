#include "explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tensorpool::command::explain {
namespace {

using Resident = std::map<MappingKind, std::uint64_t>;

Resident resident_by_kind(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings,
                          const ReadWord& read_word) {
    const Range pools{snapshot.pool_addresses.begin, snapshot.pool_addresses.bytes};
    const Range page_map{snapshot.page_map.begin, snapshot.page_map.bytes};
    const bool is_python = runs_python(mappings);
    Resident resident;
    for (std::size_t i = 0; i != mappings.size(); ++i) {
        const MappingKind kind = kind_of(mappings, i, pools, page_map);
        resident[kind] += mappings[i].resident_bytes;
        if (kind != MappingKind::anonymous) continue;
        const MappedChunks chunks = chunks_in(mappings[i], is_python, read_word);
        resident[MappingKind::anonymous] -= chunks.malloc_bytes + chunks.python_bytes;
        resident[MappingKind::malloc_chunk] += chunks.malloc_bytes;
        resident[MappingKind::python] += chunks.python_bytes;
    }
    return resident;
}

/// Divides the resident memory of anonymous mappings: parts of known size first, then the rest.
class AnonymousMemory {
public:
    AnonymousMemory(Resident& resident, std::vector<Row>& rows)
        : resident_(resident), rows_(rows) {}

    /// Takes `bytes` for a row, or what is left. Returns what it took. Memory of tensorpool may
    /// look like Python's, whose arenas have no mark.
    std::uint64_t take(std::uint64_t bytes) {
        std::uint64_t taken = 0;
        for (const MappingKind kind : {MappingKind::anonymous, MappingKind::python}) {
            const std::uint64_t part = std::min(bytes - taken, resident_[kind]);
            resident_[kind] -= part;
            taken += part;
        }
        return taken;
    }

    /// An arena was touched up to its highest use, or up to what it has now.
    void add_arena(const ArenaStatistics& arena, const char* kind, const char* trim) {
        const std::uint64_t touched =
            std::min(arena.capacity_bytes, std::max(arena.peak_used_bytes, arena.used_bytes));
        const std::uint64_t used = take(std::min(arena.used_bytes, touched));
        const std::uint64_t unused = take(touched - std::min(touched, arena.used_bytes));
        rows_.push_back({.what = fmt::format("{} '{}': in use", kind, arena.name), .bytes = used});
        rows_.push_back({fmt::format("{} '{}': touched before, now unused", kind, arena.name),
                         unused, unused, fmt::format("committed until a trim of the {}", kind),
                         trim});
    }

private:
    Resident& resident_;
    std::vector<Row>& rows_;
};

}  // namespace

Explanation explain(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings,
                    const ReadWord& read_word) {
    Resident resident = resident_by_kind(snapshot, mappings, read_word);
    Explanation result{.process = snapshot.process, .name = snapshot.process_name};
    for (const auto& [kind, bytes] : resident) result.resident_bytes += bytes;
    std::vector<Row>& rows = result.rows;
    const auto add = [&](const char* what, std::uint64_t bytes) {
        rows.push_back({.what = what, .bytes = bytes});
    };
    add_pools(result, snapshot, resident[MappingKind::pools]);

    AnonymousMemory anonymous(resident, rows);
    std::uint64_t records = 0;
    for (const PoolStatistics& pool : snapshot.pools) records += anonymous.take(pool.record_bytes);
    add("records of tensorpool",
        records + resident[MappingKind::page_map] + resident[MappingKind::segment]);
    for (const ArenaStatistics& arena : snapshot.arenas) {
        if (arena.kind == ArenaStatistics::Kind::growing) {
            anonymous.add_arena(arena, "arena", "Arena::trim in the program");
        }
    }
    for (const ArenaStatistics& scratch : snapshot.scratches) {
        anonymous.add_arena(scratch, "scratch", "Scratch::trim in the program");
    }
    add("heap of the C library", resident[MappingKind::heap]);
    add("large blocks of the C library's malloc", resident[MappingKind::malloc_chunk]);
    add("small objects of Python, by the size of their mappings", resident[MappingKind::python]);
    add("stacks of threads", resident[MappingKind::stack]);
    add("program, libraries and other files", resident[MappingKind::file]);
    add("memory shared with other processes", resident[MappingKind::shared]);
    add("memory of device drivers", resident[MappingKind::device]);
    add("other mappings", resident[MappingKind::anonymous]);
    std::erase_if(rows, [](const Row& row) { return row.bytes == 0; });
    std::ranges::stable_sort(rows, std::ranges::greater(), &Row::bytes);
    add_scopes(result, snapshot);
    return result;
}

}  // namespace tensorpool::command::explain
