#pragma once

/// @file
/// Files of buffers, read and written. `name` stands in errors, which are FileError.

#include <string>
#include <string_view>

#include "inspect/written_file.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

/// As public benchmark sets have them: `id,lower,upper,size[,alignment][,offset]` in a first line
/// that names the columns, in any order; then a line for each buffer. Lines may end with CR LF,
/// blank ones are skipped, and what holds commas stands in double quotes. Without ids, buffers are
/// numbered from 0.
Buffers read_csv(std::string_view text, const std::string& name);

/// An array of objects with the same names, or an object that has such an array as `buffers`, and
/// perhaps `peak_bytes`. What else it holds is passed over.
Buffers read_json(std::string_view text, const std::string& name);

/// With the plan's offsets.
void write_csv(const Buffers& buffers, const MemoryPlan& plan, inspect::WrittenFile& file);
/// The same, and what is known of the plan.
void write_json(const Buffers& buffers, const MemoryPlan& plan, inspect::WrittenFile& file);

}  // namespace tensorpool::command::planning
