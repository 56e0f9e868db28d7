#pragma once

/// @file
/// The statistics of a Context: those of its three parts.

#include <string>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool {

/// The statistics of the three parts of a Context at one moment.
struct ContextStatistics {
    /// The pool, with all that any part of the program has from it.
    PoolStatistics pool;
    /// The context's arena.
    ArenaStatistics arena;
    /// The calling thread's scratch, or the buffer that `Context::use_scratch` set. All 0 if the
    /// thread has no scratch yet.
    ArenaStatistics scratch;
};

/// Returns one JSON object with the members `pool`, `arena` and `scratch`, each as `to_json`
/// returns it.
TENSORPOOL_API std::string to_json(const ContextStatistics& statistics);
/// Returns a report for people: the three reports, one after another. It ends with a newline.
TENSORPOOL_API std::string to_text(const ContextStatistics& statistics);

}  // namespace tensorpool
