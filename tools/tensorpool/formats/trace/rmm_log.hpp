#pragma once

#include <string_view>

#include "formats/trace/input.hpp"
#include "formats/trace/recording.hpp"

namespace tensorpool::command::trace {

/// The first line of a log of RMM's logging_resource_adaptor.
inline constexpr std::string_view rmm_log_beginning = "Thread,Time,Action,Pointer,Size,Stream";

/// Reads a log as one process with one pool, "rmm". Times are times of day; if they go back by half
/// a day or more, the next day has begun. Streams are ignored. Throws TraceError.
Recording read_rmm_log(Input& input);

}  // namespace tensorpool::command::trace
