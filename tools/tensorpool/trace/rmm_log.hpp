#pragma once

#include <string_view>

#include "trace/input.hpp"
#include "trace/recording.hpp"

namespace tensorpool::command::trace {

/// What RMM's logging_resource_adaptor writes in its first line.
inline constexpr std::string_view rmm_log_beginning = "Thread,Time,Action,Pointer,Size,Stream";

/// One process with one pool, "rmm". Times are of a day: where they go back by half a day or more,
/// the next one has begun. Streams are left out. Throws TraceError.
Recording read_rmm_log(Input& input);

}  // namespace tensorpool::command::trace
