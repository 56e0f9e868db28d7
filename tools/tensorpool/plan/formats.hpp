#pragma once

/// @file
/// Reading and writing files of buffers. Readers throw FileError with `name` as the file's name.

#include <string>
#include <string_view>

#include "common/output.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

/// Reads buffers from CSV in the format of public benchmark sets. A header line names the columns
/// `id,lower,upper,size[,alignment][,offset]` in any order; one line for each buffer follows. Lines
/// may end with CR LF, blank lines are skipped, and values with commas are in double quotes.
/// Without ids, buffers are numbered from 0.
Buffers read_csv(std::string_view text, const std::string& name);

/// Reads buffers from JSON: an array of objects with the field names of the CSV format, or an
/// object that has such an array as `buffers` and optionally `peak_bytes`. Other members are
/// ignored.
Buffers read_json(std::string_view text, const std::string& name);

/// Writes the buffers with the plan's offsets as CSV.
void write_csv(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file);
/// Writes the buffers with the plan's offsets, and the plan's peak, lower bound and method, as
/// JSON.
void write_json(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file);

}  // namespace tensorpool::command::planning
