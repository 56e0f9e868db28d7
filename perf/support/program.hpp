#pragma once

/// The command line and the tables of the programs that alternate between their own subjects.

#include <string>
#include <vector>

namespace perf {

struct Options {
    int rounds;
    bool quick = false;     ///< small sizes: a test that the program works
    bool check = false;     ///< the program returns 1 if an aim is missed
    bool markdown = false;  ///< tables for perf/results
};

/// Reads `--rounds N`, `--quick`, `--check` and `--markdown`. On any other argument, or if N is
/// below 1, prints the usage and exits with 2.
Options read_options(int argc, char** argv, int default_rounds);

using Cells = std::vector<std::string>;

/// Returns the value with `digits` digits after the decimal point.
std::string text(double value, int digits = 2);

/// Prints tables and counts the aims that were missed.
class Report {
public:
    explicit Report(const Options& options) : options_(options) {}

    /// Returns a cell with the value, its aim (at most `aim`), and whether the aim was met.
    std::string judge(double value, double aim, int digits = 2);
    /// Prints a table. The first row holds the headings, the first column the names of the rows.
    void print(const std::string& title, const std::vector<Cells>& rows) const;
    /// Reports a part that could not be measured. It counts as a missed aim.
    void print_unmeasured(const std::string& title, const std::string& reason);
    /// Returns the exit status: 1 with `--check` if an aim was missed, otherwise 0.
    int status() const { return options_.check && missed_ != 0 ? 1 : 0; }

private:
    Options options_;
    int missed_ = 0;
};

}  // namespace perf
