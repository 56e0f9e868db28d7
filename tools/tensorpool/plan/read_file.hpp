#pragma once

#include <string>

#include "plan/recorded_buffers.hpp"

namespace tensorpool::command::planning {

/// CSV, JSON, a trace or a log of RMM, which it tells by the file's beginning; `choice` is for the
/// latter two. Throws FileError, and what reading a trace throws.
Buffers read_file(const std::string& path, const Choice& choice);

/// The same of bytes in memory, without traces; `name` stands in errors.
Buffers read_text(std::string_view text, const std::string& name);

}  // namespace tensorpool::command::planning
