#pragma once

/// What the programs share that take turns among their own subjects: the command line, and tables
/// with aims.

#include <string>
#include <vector>

namespace perf {

struct Options {
    int rounds;
    bool quick = false;     ///< small sizes, to see that it works
    bool check = false;     ///< a missed aim makes the program fail
    bool markdown = false;  ///< tables for perf/README.md
};

/// Of `--rounds N`, `--quick`, `--check` and `--markdown`. Anything else, or no round: says so and
/// exits with 2.
Options read_options(int argc, char** argv, int default_rounds);

using Cells = std::vector<std::string>;

/// A figure with `digits` after the point.
std::string text(double figure, int digits = 2);

/// Prints tables and counts the aims that were missed.
class Report {
public:
    explicit Report(const Options& options) : options_(options) {}

    /// The figure, its aim, and whether it was met.
    std::string judge(double figure, double at_most, int digits = 2);
    /// The first row holds the headings, the first column the names of the rows.
    void print(const std::string& title, const std::vector<Cells>& rows) const;
    /// For a part that could not be measured: that counts as missed.
    void print_unmeasured(const std::string& title, const std::string& reason);
    /// What main returns.
    int status() const { return options_.check && missed_ != 0 ? 1 : 0; }

private:
    Options options_;
    int missed_ = 0;
};

}  // namespace perf
