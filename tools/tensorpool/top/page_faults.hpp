#pragma once

namespace tensorpool::command {

enum class PageSize { small, huge };

/// Nanoseconds of processor time that a page of 4 KiB costs when it is touched for the first time:
/// the median of several rounds. 0 where there is no memory to try it with.
double measure_fault_ns(PageSize size);

}  // namespace tensorpool::command
