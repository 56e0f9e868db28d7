#pragma once

#include <cstdint>

#include "formats/trace/recording.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {

/// Whether to compute offsets of blocks, for the allocator `none` or `plan`.
enum class Offsets : bool { no, yes };

/// Returns the process with this process id, or for 0 the one that allocated the most bytes, as an
/// index into `Recording::processes`. Throws CommandError if there is no such process, or if none
/// allocated.
std::uint32_t choose_process(const trace::Recording& recording, std::uint64_t number);

/// Returns the plan of one process. Blocks of arenas and scratches are handled like others; each is
/// freed at the release that ended it. `planned` computes a memory plan, which takes up to about a
/// second. Throws CommandError if a block exceeds the limits of Step.
Plan compile(const trace::Recording& recording, std::uint32_t process, Offsets floor,
             Offsets planned = Offsets::no);

}  // namespace tensorpool::command::replay
