#pragma once

// The functions that work in given memory are in this section of the header.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstddef>

namespace tensorpool::stashing {

/// How zstd compresses a plane.
enum class ZstdUse {
    entropy,  ///< codes each byte by its frequency; looks for repetitions in few positions only
    matches,  ///< looks for repetitions, as zstd's level 1
    fast_matches,  ///< looks for repetitions from 4 bytes too, and leaves the rest as it is
};

/// Returns the parameters of zstd for planes of up to `plane_bytes` bytes. `fast_matches` needs the
/// most memory.
inline ZSTD_compressionParameters zstd_parameters(ZstdUse use, std::size_t plane_bytes) noexcept {
    const unsigned window =
        std::clamp(static_cast<unsigned>(std::bit_width(plane_bytes)), 10U, 21U);
    ZSTD_compressionParameters parameters = {};
    parameters.windowLog = window;
    parameters.chainLog = ZSTD_CHAINLOG_MIN;
    parameters.searchLog = ZSTD_SEARCHLOG_MIN;
    parameters.strategy = ZSTD_fast;
    if (use == ZstdUse::entropy) {
        // Short matches in random bytes save little, and each costs the decoder as much time as
        // ten literals: perf/results/stash.md.
        parameters.hashLog = 12;
        parameters.minMatch = ZSTD_MINMATCH_MAX;
        parameters.targetLength = 50;
    } else if (use == ZstdUse::matches) {
        parameters.hashLog = 14;
        parameters.minMatch = 6;
        parameters.targetLength = 1;
    } else {
        // Elements of known values, such as pictures, repeat in units as short as one float.
        parameters.hashLog = 14;
        parameters.chainLog = 14;
        parameters.minMatch = 4;
        parameters.strategy = ZSTD_dfast;
    }
    return parameters;
}

}  // namespace tensorpool::stashing
