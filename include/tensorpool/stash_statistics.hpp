#pragma once

/// @file
/// The statistics of memory at rest. Sizes are bytes.

#include <cstdint>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// What rests under one name: the stashes of one name and budget, a StashedMap, or the frozen
/// blocks of one name and budget. Totals are those since the first of them; times are those of all
/// threads together.
struct StashStatistics {
    /// What the numbers are about.
    enum class Kind : std::uint8_t {
        stashes,  ///< objects of class Stash
        map,      ///< one StashedMap
        frozen,   ///< blocks that `freeze` froze in place
    };

    /// The name of the tensors, or that of the map, zero-terminated.
    char name[48] = {};
    /// What the numbers are about.
    Kind kind = Kind::stashes;
    /// A number that no other object of the process has.
    std::uint64_t id = 0;
    /// The number of the budget that is charged for what rests in memory; 0 for none. That budget
    /// may have ended. Of frozen blocks, it is the budget of their pool, or of the scope of the
    /// thread that froze them; their compressed content is charged to none.
    std::uint64_t budget = 0;
    /// The tensors: the stashes, the tensors in the map, or the frozen blocks.
    std::uint64_t tensors = 0;
    /// The uncompressed bytes of these tensors that are in memory.
    std::uint64_t memory_bytes = 0;
    /// The uncompressed size of what is at rest.
    std::uint64_t stashed_bytes = 0;
    /// The memory that compressed content takes. Of frozen blocks, it includes that of pieces that
    /// came back, which is kept while they are not written.
    std::uint64_t compressed_bytes = 0;
    /// The bytes of spilled content in files.
    std::uint64_t spilled_bytes = 0;
    /// The calls of `StashedMap::get` that found a tensor in memory.
    std::uint64_t hits = 0;
    /// The calls of `StashedMap::get` that found a tensor at rest; of frozen blocks, the page
    /// faults that found one.
    std::uint64_t misses = 0;
    /// How often a tensor was put to rest.
    std::uint64_t stashes = 0;
    /// How often the content of a tensor went to a file; of a map, after it was compressed in
    /// memory.
    std::uint64_t spills = 0;
    /// How often a tensor was brought back as a whole.
    std::uint64_t restores = 0;
    /// How often a tensor could not be put to rest or brought back.
    std::uint64_t failures = 0;
    /// The nanoseconds of putting to rest, spilling included.
    std::uint64_t stash_ns = 0;
    /// The nanoseconds of bringing back; of frozen blocks, of serving page faults too.
    std::uint64_t restore_ns = 0;

    /// Returns the bytes that rest takes, in memory and in files.
    std::uint64_t bytes_at_rest() const noexcept { return compressed_bytes + spilled_bytes; }
    /// Returns `bytes_at_rest()` as a part of `stashed_bytes`; 0 if nothing rests. It may exceed 1
    /// for frozen blocks of which much came back.
    double ratio() const noexcept {
        return stashed_bytes == 0
                   ? 0
                   : static_cast<double>(bytes_at_rest()) / static_cast<double>(stashed_bytes);
    }
};

/// Returns "stashes", "map" or "frozen".
TENSORPOOL_API const char* to_string(StashStatistics::Kind kind) noexcept;
/// Returns one JSON object whose keys are the names of the fields of StashStatistics.
TENSORPOOL_API std::string to_json(const StashStatistics& stash);

}  // namespace tensorpool
