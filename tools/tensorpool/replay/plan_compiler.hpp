#pragma once

#include <cstdint>

#include "replay/plan.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::replay {

/// Whether blocks are to have places: the floor's, or a plan's.
enum class Places : bool { no, yes };

/// The process of number `number`, or where that is 0 the one that allocated most bytes: an index
/// into `Recording::processes`. Throws CommandError where it is not there, or where none allocated.
std::uint32_t choose_process(const trace::Recording& recording, std::uint64_t number);

/// The steps of one process. Blocks of arenas and scratches are blocks like others, each freed
/// where a release ended it. `planned`: plan_memory is asked, for a second at most. Throws
/// CommandError where a block is larger than any memory.
Plan compile(const trace::Recording& recording, std::uint32_t process, Places floor,
             Places planned = Places::no);

}  // namespace tensorpool::command::replay
