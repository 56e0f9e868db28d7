#pragma once

namespace tensorpool::statistics {

/// TENSORPOOL_REPORT: a report of all that holds memory is wanted when the program ends. A value
/// that makes no sense is told on stderr.
bool report_wanted_by_environment();

/// Has that report printed on stderr at exit, where it is wanted. Looks once; whatever holds memory
/// calls it when it is made.
void report_at_exit_where_wanted();

}  // namespace tensorpool::statistics
