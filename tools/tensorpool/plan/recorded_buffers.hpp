#pragma once

/// @file
/// The blocks of a recording as buffers.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "plan/buffers.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::planning {

enum class Kind : std::uint8_t {
    host,     ///< all but devices
    pools,    ///< pools alone
    arenas,   ///< arenas, scratches and planned arenas
    devices,  ///< allocators of device memory
    all,
};

/// What of a recording is to be laid out.
struct Choice {
    std::uint64_t process = 0;  ///< its number; 0: the one that asked for most bytes
    std::vector<std::string> sources =
        {};  ///< names of pools, arenas and so on; empty: all of `kind`
    Kind kind = Kind::host;
    std::uint64_t from = 0;                                        ///< the first call
    std::uint64_t to = std::numeric_limits<std::uint64_t>::max();  ///< the first that is not of it
    /// The least of each; the pool promises 64 bytes.
    std::uint64_t alignment = 64;
};

/// Time is counted in calls: a block is alive from the number of the call that made it to that of
/// the one that ended it, and one that was alive at the end ends after the last call. What reaches
/// over the ends of the choice is cut there. A block that was resized is one buffer before that
/// and another after it. Throws CommandError, telling what there is, where the choice holds
/// nothing.
Buffers buffers_of(const trace::Recording& recording, const Choice& choice,
                   const std::string& name);

}  // namespace tensorpool::command::planning
