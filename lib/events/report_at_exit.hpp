#pragma once

namespace tensorpool::events {

/// Returns whether TENSORPOOL_REPORT requests a report of all memory when the program ends. An
/// invalid value is reported on stderr.
bool report_wanted_by_environment();

/// Prints that report to stderr at exit if it was requested. Reads the variable once. Called by
/// each object that holds memory when it is created.
void report_at_exit_where_wanted();

}  // namespace tensorpool::events
