#pragma once

/// @file
/// The forms of a heap profile. Names come from another process, and each function makes them safe
/// for its form.

#include <tensorpool/metrics.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "common/html.hpp"
#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::profile {

struct TextOptions {
    std::size_t max_rows = 10;
    bool stacks = false;     ///< a row for each site, with its stack below, and not for each line
    bool lifetimes = false;  ///< instead of the bytes
    Sizes sizes = Sizes::iec;
};

/// Returns why sites may be missing from the profile.
std::vector<std::string> notes_of(const HeapProfile& profile);
/// Returns a headline and a table for a terminal: of the lines of the program that allocate, or of
/// the sites.
std::string to_text(const NamedProfile& named, const TextOptions& options);
/// Returns the sites with their freed blocks by lifetime, as lines: the titles, then one for each
/// site.
std::vector<std::string> lifetime_lines(const NamedProfile& named, std::size_t max_rows);

nlohmann::ordered_json to_json(const NamedProfile& named);
/// Reads the file that `--json` wrote, for comparison. Throws CommandError.
nlohmann::ordered_json read_json(const std::string& path);

/// Returns the binary format of pprof (profile.proto), not compressed. It contains all values. The
/// chosen one is the default.
std::string to_pprof(const NamedProfile& named);
/// Returns gperftools' text format with symbols: the chosen value, and all that was allocated.
std::string to_pprof_legacy(const NamedProfile& named);
/// Returns a line "outer;inner bytes" for each stack, for flamegraph.pl and others.
std::string to_collapsed(const NamedProfile& named);
/// Returns the file format of speedscope, of the type "sampled".
std::string to_speedscope(const NamedProfile& named);
/// Returns a page with a flame graph that needs no network. `before` is an earlier profile to
/// compare with; null if there is none.
HtmlPage to_flame_graph(const NamedProfile& named, const nlohmann::ordered_json& before);

/// Parses "off", "all", or a size from 1 KiB to 1 TiB: values of TENSORPOOL_PROFILE. Returns the
/// mean distance between samples in bytes, 0 for none, 1 for all; nothing for other texts.
std::optional<std::uint64_t> parse_interval(std::string_view text);

/// A validator for CLI11: returns why the text is not a distance, or "".
std::string problem_of_interval(const std::string& text);

/// Makes the process sample at this distance. Returns a sentence that says so. Throws CommandError
/// if the process does not do so within three seconds.
std::string change_interval(StatisticsReader& process, std::uint64_t bytes);

/// Makes a process that takes no samples take them, one in 512 KiB. Returns sentences that say so.
/// Throws like `change_interval`.
std::string turn_on(StatisticsReader& process);

/// Collects the lines of code that hold the most memory. The number of time series stays small:
/// each process has at most `max_lines` lines at a time.
class SiteMetrics {
public:
    static constexpr std::size_t max_lines = 10;
    static constexpr std::size_t max_label_bytes = 120;

    SiteMetrics();
    /// Adds the `max_lines` lines with the most live bytes. Sites with the same line are added up,
    /// so that a line's total never decreases.
    void add(const NamedProfile& named);
    std::vector<MetricFamily> families() const;

private:
    MetricFamily live_;
    MetricFamily allocated_;
};

}  // namespace tensorpool::command::profile
