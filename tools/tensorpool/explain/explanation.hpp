#pragma once

/// @file
/// The mappings of a process, as /proc/<pid>/smaps lists them, and an explanation of its resident
/// memory.

#include <functional>
#include <istream>

#include <tensorpool/detail/saturating.hpp>

#include "common/totals.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::explain {

/// What a mapping holds, as far as its name, its access and its neighbours show.
enum class MappingKind {
    pools,      ///< memory of pools
    page_map,   ///< the words for the pages of pools
    segment,    ///< the statistics of this process
    heap,       ///< of the C library's malloc
    stack,      ///< of a thread
    file,       ///< of a program, a library, another file or the kernel
    shared,     ///< shared with other processes
    device,     ///< of a device's driver
    anonymous,  ///< anything else
    // What anonymous mappings contain; `kind_of` does not return these.
    malloc_chunk,  ///< large blocks of the C library's malloc
    python,        ///< small objects of Python
};

struct Mapping {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::string access;  ///< such as "rw-p"
    std::string path;    ///< "" if it has none
    std::uint64_t resident_bytes = 0;

    bool is_accessible() const { return access.starts_with('r'); }
    std::uint64_t bytes() const { return end - begin; }
};

/// A range of addresses that the process published.
struct Range {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;

    bool contains(const Mapping& mapping) const {
        return mapping.begin - begin < bytes;  // also false below `begin`
    }
};

/// Reads mappings until the end of `smaps`, in the order of their addresses.
std::vector<Mapping> read_memory_map(std::istream& smaps);
/// Reads the mappings of a process. Throws CommandError if they cannot be read.
std::vector<Mapping> read_memory_map(std::uint64_t process);

/// Returns what the mapping with this index holds.
MappingKind kind_of(const std::vector<Mapping>& mappings, std::size_t index, Range pools,
                    Range page_map);

/// Reads a word of the process's memory; nothing if it cannot be read.
using ReadWord = std::function<std::optional<std::uint64_t>(std::uint64_t address)>;

/// Returns a function that reads the memory of a process as far as the system allows it.
ReadWord memory_of(std::uint64_t process);

/// Resident bytes of one mapping.
struct MappedChunks {
    std::uint64_t malloc_bytes = 0;  ///< large blocks of the C library's malloc
    std::uint64_t python_bytes = 0;  ///< arenas of Python's small objects
};

/// Returns whether the process runs Python.
bool runs_python(const std::vector<Mapping>& mappings);

/// Finds out what an anonymous mapping holds. A large block of malloc begins with its size, and the
/// system joins adjacent ones. What is left of a mapping of Python, and large enough for an arena,
/// counts as arenas. The resident bytes are divided in proportion.
MappedChunks chunks_in(const Mapping& mapping, bool is_python, const ReadWord& read_word);

/// A part of a process's resident memory.
struct Row {
    std::string what;
    std::uint64_t bytes = 0;
    std::uint64_t back_bytes = 0;  ///< what can be given back to the system
    std::string why = {};          ///< what keeps memory that is not in use; "" if that is not ours
    std::string how = {};          ///< what gives it back; "" if nothing is known to
};

/// What allocated a part of the blocks in use: a call site or a scope.
struct Allocator {
    std::string name;
    std::uint64_t bytes = 0;
};

/// The resident part of the blocks in use of all pools, without rounding.
struct InUse {
    std::uint64_t bytes = 0;
    /// What callers requested for these blocks; more than `bytes` if they were not touched whole.
    std::uint64_t requested_bytes = 0;
    std::uint64_t interval = 0;     ///< the mean distance between samples
    std::vector<Allocator> sites;   ///< estimated; they add up to `bytes` unless there are none
    std::vector<Allocator> scopes;  ///< what ended scopes allocated and did not free
    std::string note;               ///< why there are no sites
};

/// Why the resident memory of a process is what it is. The rows add up to it.
struct Explanation {
    std::uint64_t process = 0;
    std::string name;
    std::uint64_t resident_bytes = 0;
    std::vector<Row> rows = {};  ///< the largest first; none is empty
    InUse in_use = {};           ///< divides the rows of blocks in use once more
};

std::string to_text(const Explanation& explanation, Sizes sizes);
std::string to_json(const Explanation& explanation);

using detail::sum;

/// Returns `one - other`, or 0 if that is less.
constexpr std::uint64_t above(std::uint64_t one, std::uint64_t other) {
    return one > other ? one - other : 0;
}

/// Returns `bytes * factor`. REQUIRES: `factor` is 0 to 1.
inline std::uint64_t times(std::uint64_t bytes, double factor) {
    const std::uint64_t at_most = std::min(bytes, std::uint64_t{1} << 52);
    const auto product = std::llround(static_cast<double>(at_most) * factor);
    return std::min(at_most, static_cast<std::uint64_t>(product));
}

inline constexpr std::uint64_t page_bytes = 4096;

/// Returns the estimated part of a bucket's parked bytes in pages without blocks in use, if the
/// blocks in use lie at random in the pages that are not entirely free. `in_free_pages` is the part
/// of all spans in free pages.
inline double free_of_neighbours(const BucketStatistics& bucket, double in_free_pages) {
    if (bucket.in_use_bytes == 0) return 1;
    const double bytes = bucket.allocations == 0
                             ? static_cast<double>(bucket.block_bytes)
                             : ratio(bucket.allocated_bytes, bucket.allocations);
    // Blocks of finer sizes, and those from a page on, do not begin at pages. Such a page holds
    // parts of one block more.
    const bool is_aligned = bucket.block_bytes < page_bytes &&
                            std::lround(bytes) == static_cast<long>(bucket.block_bytes);
    const double others = static_cast<double>(page_bytes) / bytes - (is_aligned ? 1 : 0);
    const std::uint64_t pages = times(bucket.capacity_bytes, 1 - in_free_pages);
    const double used = std::min(ratio(bucket.in_use_bytes, pages), 1.0);
    return std::pow(1 - used, std::max(others, 0.0));
}

/// The free memory of one pool that was touched, by what keeps it. The statistics may be damaged.
struct FreeMemory {
    explicit FreeMemory(const PoolStatistics& pool) {
        pages = above(pool.free_bytes, pool.untouched_bytes);
        prepared = std::min(
            pages, above(pool.prepared_bytes, above(pool.capacity_bytes, pool.free_bytes)));
        pages -= prepared;
        cached = pool.large.cached_bytes;
        parked = parked_back = pool.large.parked_bytes;
        waiting = sum(pool.quarantined_bytes, pool.lost_bytes);
        std::uint64_t capacity = 0;
        for (const BucketStatistics& bucket : pool.buckets) {
            capacity = sum(capacity, bucket.capacity_bytes);
        }
        const double in_free_pages = std::min(
            ratio(sum(pool.trimmable_span_bytes, pool.untouched_span_bytes), capacity), 1.0);
        for (const BucketStatistics& bucket : pool.buckets) add(bucket, in_free_pages);
        // Small blocks that wait are not in their spans, like those of the depot.
        depot = above(depot, waiting);
        depot_back = std::min(depot_back, depot);
        pinned = above(pinned, pool.untouched_span_bytes);
        spans = std::min(pinned, pool.trimmable_span_bytes);
        pinned -= spans;
    }

    std::uint64_t prepared = 0;  ///< free pages that `reserve` prepared
    std::uint64_t pages = 0;     ///< other free pages
    std::uint64_t cached = 0;    ///< large blocks
    std::uint64_t parked = 0;    ///< blocks in threads' magazines
    std::uint64_t parked_back = 0;
    std::uint64_t depot = 0;  ///< small blocks in magazines that no thread holds
    std::uint64_t depot_back = 0;
    std::uint64_t spans = 0;    ///< small blocks in spans, on pages that hold nothing else
    std::uint64_t pinned = 0;   ///< small blocks in spans, on pages that also hold others
    std::uint64_t waiting = 0;  ///< in the quarantine, or lost by a fork

    std::uint64_t all() const {
        std::uint64_t bytes = 0;
        for (const std::uint64_t one :
             {prepared, pages, cached, parked, depot, spans, pinned, waiting}) {
            bytes = sum(bytes, one);
        }
        return bytes;
    }

private:
    void add(const BucketStatistics& bucket, double in_free_pages) {
        const double back = free_of_neighbours(bucket, in_free_pages);
        parked = sum(parked, bucket.parked_bytes);
        parked_back = sum(parked_back, times(bucket.parked_bytes, back));
        depot = sum(depot, bucket.depot_bytes);
        depot_back = sum(depot_back, times(bucket.depot_bytes, back));
        const std::uint64_t out =
            sum(bucket.in_use_bytes, sum(bucket.parked_bytes, bucket.depot_bytes));
        pinned = sum(pinned, above(bucket.capacity_bytes, out));
    }
};

using Resident = std::map<MappingKind, std::uint64_t>;

inline Resident resident_by_kind(const ProcessSnapshot& snapshot,
                                 const std::vector<Mapping>& mappings, const ReadWord& read_word) {
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

// Divides the blocks in use by call site and by scope.
//
// The heap profile estimates what each site holds, of all pools together. Its sum differs from the
// bytes in use, which are known. If it is more, all sites are scaled down. If it is less, the rest
// is that of other sites, because some pools and blocks are not sampled.

inline constexpr std::size_t max_named = 10;
inline constexpr std::uint64_t parts_of_resident = 100;  // a smaller part than one is not named

/// Sorts by size and removes all but the largest.
inline void keep_largest(std::vector<Allocator>& all, std::uint64_t resident) {
    std::ranges::stable_sort(all, std::ranges::greater(), &Allocator::bytes);
    const auto is_small = [&](const Allocator& one) {
        return one.bytes == 0 || one.bytes < resident / parts_of_resident;
    };
    all.erase(std::ranges::find_if(all, is_small), all.end());
    all.resize(std::min(all.size(), max_named));
}

// The rows for the memory of pools.
//
// What is free and touched is known from the pools' statistics. The rest of what is resident are
// blocks in use, as far as their owners touched them. The statistics may be damaged, so no row gets
// more than what is left of the resident bytes.

/// Returns the retention policy of a pool, which is not known of pools without a record.
inline std::string retention_of(const PoolStatistics& pool) {
    std::string text = "retention period";
    if (pool.id == 0) return text;
    if (pool.retain_ms % 1000 == 0) {
        text += fmt::format(" of {} s", pool.retain_ms / 1000);
    } else {
        text += fmt::format(" of {} ms", pool.retain_ms);
    }
    if (pool.retain_bytes != UINT64_MAX) {
        text += fmt::format(", limit {}", format_size(pool.retain_bytes));
    }
    return text;
}

inline std::string magazines_of(const PoolStatistics& pool,
                                const std::vector<ThreadStatistics>& threads) {
    const auto count = std::ranges::count_if(threads, [&](const ThreadStatistics& thread) {
        return thread.pool == pool.id && thread.parked_bytes != 0;
    });
    return fmt::format("for the next requests of {} thread{}", count, count == 1 ? "" : "s");
}

class PoolRows {
public:
    PoolRows(Explanation& to, const ProcessSnapshot& snapshot, std::uint64_t resident)
        : to_(to), snapshot_(snapshot), resident_(resident), left_(resident) {
        for (const PoolStatistics& pool : snapshot.pools) {
            free_bytes_ = sum(free_bytes_, FreeMemory(pool).all());
            in_use_bytes_ = sum(in_use_bytes_, pool.in_use_bytes);
        }
        for (const PlannedArenaStatistics& arena : snapshot.planned) {
            in_use_bytes_ = sum(in_use_bytes_, arena.capacity_bytes);
        }
    }

    void make() {
        const std::uint64_t touched = above(resident_, free_bytes_);
        const double of_in_use = std::min(ratio(touched, in_use_bytes_), 1.0);
        const double of_free = std::min(ratio(resident_, free_bytes_), 1.0);
        for (const PoolStatistics& pool : snapshot_.pools) {
            add_in_use(pool, of_in_use);
            add_free(pool, of_free);
        }
        for (const PlannedArenaStatistics& arena : snapshot_.planned) {
            add({.what = fmt::format("planned arena '{}': its plan", arena.name),
                 .bytes = times(arena.capacity_bytes, of_in_use)});
        }
        add({.what = "pools: pages that the system filled, and calls under way", .bytes = left_});
    }

private:
    void add_in_use(const PoolStatistics& pool, double touched) {
        const double rounding =
            ratio(above(pool.allocated_bytes, pool.requested_bytes), pool.allocated_bytes);
        const std::uint64_t bytes = times(pool.in_use_bytes, touched);
        const std::uint64_t surplus = times(bytes, rounding);
        to_.in_use.bytes += add(
            {.what = fmt::format("pool '{}': blocks in use", pool.name), .bytes = bytes - surplus});
        to_.in_use.requested_bytes =
            sum(to_.in_use.requested_bytes, times(pool.in_use_bytes, 1 - rounding));
        add({.what = fmt::format("pool '{}': rounding of these blocks, on average", pool.name),
             .bytes = surplus});
    }

    void add_free(const PoolStatistics& pool, double touched) {
        const FreeMemory free(pool);
        const std::string trim = fmt::format("tensorpool trim --pid {}", snapshot_.process);
        const std::string retention = retention_of(pool);
        const auto add_kept = [&](const char* what, std::uint64_t bytes, std::uint64_t back,
                                  const std::string& why) {
            add({fmt::format("pool '{}': {}", pool.name, what), times(bytes, touched),
                 times(back, touched), why, back == 0 ? "" : trim});
        };
        add_kept("free pages that `reserve` prepared", free.prepared, free.prepared,
                 "until a trim");
        add_kept("free pages", free.pages, free.pages, retention);
        add_kept("free large blocks in the cache", free.cached, free.cached, retention);
        add_kept("free blocks parked by threads", free.parked, free.parked_back,
                 magazines_of(pool, snapshot_.threads));
        add_kept("free small blocks in depots", free.depot, free.depot_back, retention);
        add_kept("free small blocks on pages of their own", free.spans, free.spans,
                 "spans that have blocks in use");
        add_kept("free small blocks beside blocks in use", free.pinned, 0,
                 "blocks in use or parked on the same pages");
        add_kept("freed blocks in the quarantine, or lost by a fork", free.waiting, 0, "");
    }

    /// Returns the bytes of the row.
    std::uint64_t add(Row row) {
        row.bytes = std::min(row.bytes, left_);
        row.back_bytes = std::min(row.back_bytes, row.bytes);
        left_ -= row.bytes;
        const std::uint64_t bytes = row.bytes;
        if (bytes != 0) to_.rows.push_back(std::move(row));
        return bytes;
    }

    Explanation& to_;
    const ProcessSnapshot& snapshot_;
    const std::uint64_t resident_;
    std::uint64_t left_;  // without a row yet
    std::uint64_t free_bytes_ = 0;
    std::uint64_t in_use_bytes_ = 0;
};

/// Sets what scopes hold, with the same limits.
inline void add_scopes(Explanation& to, const ProcessSnapshot& snapshot) {
    for (const ScopeStatistics& scope : snapshot.scopes) {
        const std::uint64_t growth = above(scope.allocated_bytes, scope.deallocated_bytes);
        to.in_use.scopes.push_back({scope.name, std::min(growth, to.in_use.bytes)});
    }
    keep_largest(to.in_use.scopes, to.resident_bytes);
}

/// Divides the resident memory. `mappings` and `snapshot` were read at about the same time. Memory
/// of pools that is not known to be free counts as blocks in use. `read_word` reads the process.
inline Explanation explain(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings,
                           const ReadWord& read_word = {}) {
    Resident resident = resident_by_kind(snapshot, mappings, read_word);
    Explanation result{.process = snapshot.process, .name = snapshot.process_name};
    for (const auto& [kind, bytes] : resident) result.resident_bytes += bytes;
    std::vector<Row>& rows = result.rows;
    const auto add = [&](const char* what, std::uint64_t bytes) {
        rows.push_back({.what = what, .bytes = bytes});
    };
    PoolRows(result, snapshot, resident[MappingKind::pools]).make();

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

/// Divides the blocks in use by call site. At most ten sites are named, each with at least 1 % of
/// the resident memory.
inline void add_sites(Explanation& to, const profile::NamedProfile& named) {
    InUse& in_use = to.in_use;
    in_use.interval = std::max(named.profile.interval, named.profile.mean_distance);
    const std::uint64_t estimated = named.total(profile::Value::live);
    if (estimated == 0) {
        const std::vector<std::string> notes = profile::notes_of(named.profile);
        in_use.note = notes.empty() ? "no block in use was sampled" : notes.front();
        return;
    }
    const double resident =
        ratio(in_use.bytes, std::max({estimated, in_use.requested_bytes, in_use.bytes}));
    const profile::NamedProfile lines = sum_by_line(named);
    for (const ProfileSite& line : lines.profile.sites) {
        in_use.sites.push_back({line_of(lines, line), times(line.live_bytes, resident)});
    }
    keep_largest(in_use.sites, to.resident_bytes);
    std::uint64_t left = in_use.bytes;
    for (Allocator& site : in_use.sites) {
        site.bytes = std::min(site.bytes, left);
        left -= site.bytes;
    }
    if (left != 0) in_use.sites.push_back({"other call sites", left});
}

}  // namespace tensorpool::command::explain
