#pragma once

/// @file
/// Converts the blocks of a recording to buffers.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "formats/trace/recording.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

enum class Kind : std::uint8_t {
    host,     ///< all except devices
    pools,    ///< pools only
    arenas,   ///< arenas, scratches and planned arenas
    devices,  ///< allocators of device memory
    all,
};

/// The part of a recording that is to be planned.
struct Choice {
    std::uint64_t process = 0;  ///< process id; 0: the process that requested the most bytes
    /// Names of pools, arenas and so on; empty: all of `kind`.
    std::vector<std::string> sources = {};
    Kind kind = Kind::host;
    std::uint64_t from = 0;                                        ///< the first call
    std::uint64_t to = std::numeric_limits<std::uint64_t>::max();  ///< the call after the last one
    /// The minimum alignment of each buffer; the pool guarantees 64 bytes.
    std::uint64_t alignment = 64;
};

/// Returns the chosen blocks as buffers. Time is counted in calls: a block is alive from the call
/// that allocated it to the call that freed it. A block alive at the end of the recording ends
/// after the last call. Lifetimes are cut at the limits of the choice. A resized block becomes two
/// buffers, one before the resize and one after it. Throws CommandError if no block matches, with a
/// list of what the recording contains.
Buffers buffers_of(const trace::Recording& recording, const Choice& choice,
                   const std::string& name);

/// Reads buffers from CSV, JSON, a trace or a log of RMM; the beginning of the file determines the
/// format. `choice` applies to traces and logs. Throws FileError, and the errors of trace readers.
Buffers read_file(const std::string& path, const Choice& choice);

/// Reads buffers from CSV or JSON in memory. `name` is the file's name in errors. Throws FileError.
Buffers read_text(std::string_view text, const std::string& name);

}  // namespace tensorpool::command::planning
