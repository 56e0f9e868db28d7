#pragma once

#include <string>

#include "plan/recorded_buffers.hpp"

namespace tensorpool::command::planning {

/// Reads buffers from CSV, JSON, a trace or a log of RMM; the beginning of the file determines the
/// format. `choice` applies to traces and logs. Throws FileError, and the errors of trace readers.
Buffers read_file(const std::string& path, const Choice& choice);

/// Reads buffers from CSV or JSON in memory. `name` is the file's name in errors. Throws FileError.
Buffers read_text(std::string_view text, const std::string& name);

}  // namespace tensorpool::command::planning
