#pragma once

/// @file
/// The report that is printed when the program has ended.

#include <nlohmann/json.hpp>

#include <tensorpool/snapshot.hpp>

#include "common/html.hpp"
#include "common/units.hpp"
#include "formats/launch/launch.hpp"

namespace tensorpool::command::run {

using launch::Outcome;
using launch::Part;
using launch::PartNotes;
using launch::PlannedPart;
using launch::ProcessResult;
using launch::Results;
using launch::TraceOutput;

struct Arguments : launch::Arguments {
    std::string trace;   ///< a path; "": no recording
    std::string report;  ///< a path, or none; "": standard error
};

struct Report {
    const Arguments& arguments;
    const std::vector<PlannedPart>& parts;
    const Outcome& outcome;
    const Results& results;
    const TraceOutput* trace;  ///< nullptr: nothing was recorded
};

/// Processes beyond this number get one line each.
inline constexpr std::size_t max_in_full = 3;

inline std::string line(std::string_view title, const std::string& text) {
    return fmt::format("  {:<8} {}\n", title, text);
}

inline std::string ending(const Outcome& outcome) {
    if (outcome.signal == 0) return fmt::format("ended with code {}", outcome.code);
    const char* const name = ::sigabbrev_np(outcome.signal);
    return fmt::format("was ended by signal {}{}", outcome.signal,
                       name != nullptr ? fmt::format(" (SIG{})", name) : "");
}

inline std::string headline(const Report& report) {
    const Outcome& outcome = report.outcome;
    return fmt::format("tensorpool run: {} {}\n", printable(report.arguments.program.front()),
                       ending(outcome)) +
           line("cost", fmt::format("{:.2f} s user, {:.2f} s system, {} page faults, peak "
                                    "resident size {}",
                                    outcome.user_seconds, outcome.system_seconds,
                                    with_commas(outcome.minor_faults),
                                    format_size(outcome.peak_resident_bytes)));
}

inline std::string minimum_of(const Arguments& arguments) {
    if (!arguments.interpose_min.empty()) return arguments.interpose_min;
    const std::string given = variable("TENSORPOOL_INTERPOSE_MIN");
    return given.empty() ? "64KiB" : printable(given);
}

inline std::string reason_unused(Part part) {
    if (part == Part::holders) return "no Python of the program answers";
    if (part != Part::malloc) {
        return "not imported by any Python of the program";
    }
    return "not loaded by any process of the program: statically linked, run with elevated "
           "privileges, linked with a sanitizer, or LD_PRELOAD was removed from the environment";
}

inline std::string profile_text() {
    const char* const given = std::getenv("TENSORPOOL_PROFILE");
    return given == nullptr ? "one allocation in 512 KiB is sampled"
                            : "as TENSORPOOL_PROFILE says: " + printable(given);
}

inline std::string part_text(const PlannedPart& planned, const PartNotes& notes,
                             const Arguments& arguments) {
    if (!planned.is_put()) return "not enabled: " + planned.problem;
    if (planned.part == Part::profile) return profile_text();
    if (notes.programs == 0 && notes.problems.empty()) return reason_unused(planned.part);
    std::string text;
    if (notes.programs != 0) text = "in " + counted(notes.programs, "program");
    if (planned.part == Part::malloc && notes.programs != 0) {
        text += ": blocks from " + minimum_of(arguments) + " on";
    }
    for (const std::string& problem : notes.problems) {
        text += (text.empty() ? "failed in a program: " : "; failed in another: ") + problem;
    }
    return text;
}

inline std::string limit_text(const Results& results, const std::string& limit) {
    std::uint64_t refused = results.totals_of_others().failures;
    for (const ProcessResult& one : results.largest()) refused += one.totals.failures;
    return fmt::format("{} for the pool of each process; {} failed", limit,
                       counted(refused, "request"));
}

inline std::string pools_text(const Report& report) {
    const std::uint64_t processes = report.results.processes();
    if (processes != 0) return counted(processes, "process") + " used a pool";
    if (variable("TENSORPOOL_STATISTICS") == "off") {
        return "unknown: TENSORPOOL_STATISTICS=off keeps the statistics private";
    }
    const bool has_malloc = report.results.notes(Part::malloc).programs != 0;
    return has_malloc ? "none used: no request reached " + minimum_of(report.arguments)
                      : "none used";
}

inline std::string process_title(const ProcessResult& one) {
    return fmt::format("process {} ({}){}", one.snapshot.process,
                       printable(one.snapshot.process_name),
                       one.has_ended ? "" : ", still running");
}

inline std::string in_full(const ProcessResult& one) {
    ProcessSnapshot shown = one.snapshot;
    shown.device_streams.clear();
    shown.budgets.clear();
    shown.stashes.clear();
    shown.others.clear();
    const std::string text = tensorpool::to_text(shown);
    return fmt::format(
        "\n{}\n{}", process_title(one),
        text.empty() ? "  everything it used was destroyed before it ended\n" : text);
}

inline std::string in_a_line(const std::string& title, const Totals& totals) {
    return fmt::format("{}: peak {}, {} allocations, {} failures\n", title,
                       format_size(totals.peak_bytes), with_commas(totals.allocations),
                       with_commas(totals.failures));
}

inline std::string processes(const Results& results) {
    std::string text;
    for (std::size_t i = 0; i < results.largest().size(); ++i) {
        const ProcessResult& one = results.largest()[i];
        if (i == max_in_full) text += '\n';
        text += i < max_in_full ? in_full(one) : in_a_line(process_title(one), one.totals);
    }
    if (results.others() == 0) return text;
    return text + in_a_line(counted(results.others(), "process") + " more in total",
                            results.totals_of_others());
}

/// Returns "1,234 entries in FILE, 12 MiB", and what is missing.
inline std::string trace_text(const TraceOutput& trace) {
    const trace::TraceWriter& writer = trace.writer();
    std::string text = fmt::format("{} entries in {}, {}", with_commas(writer.entries()),
                                   printable(trace.path()), format_size(writer.written_bytes()));
    if (writer.dropped() != 0) {
        text += fmt::format("; {} more were lost", with_commas(writer.dropped()));
    }
    if (trace.threads_left_out() != 0) {
        text += fmt::format("; {} threads beyond the 512th", with_commas(trace.threads_left_out()));
    }
    if (!writer.problem().empty()) {
        text += fmt::format("; incomplete: {}", printable(writer.problem()));
    }
    return text;
}

using Json = nlohmann::ordered_json;

inline Json json_of(const PlannedPart& part, const PartNotes& notes) {
    return {{"name", name_of(part.part)},
            {"put", part.is_put()},
            {"problem", part.problem},
            {"programs", notes.programs},
            {"problems", notes.problems}};
}

inline Json json_of(const TraceOutput& trace) {
    return {{"path", trace.path()},
            {"entries", trace.writer().entries()},
            {"dropped", trace.writer().dropped()},
            {"written_bytes", trace.writer().written_bytes()},
            {"threads_left_out", trace.threads_left_out()},
            {"problem", trace.writer().problem()}};
}

inline Json json_of(const Totals& others, std::uint64_t count) {
    return {{"processes", count},
            {"peak_bytes", others.peak_bytes},
            {"allocations", others.allocations},
            {"failures", others.failures}};
}

/// Formats the report for people: the parts that were enabled and those that were not, then the
/// pools.
inline std::string to_text(const Report& report) {
    std::string text = headline(report);
    for (const PlannedPart& one : report.parts) {
        text += line(title_of(one.part),
                     part_text(one, report.results.notes(one.part), report.arguments));
    }
    if (!report.arguments.limit.empty()) {
        text += line("limit", limit_text(report.results, report.arguments.limit));
    }
    if (report.trace != nullptr) text += line("trace", trace_text(*report.trace));
    text += line("pools", pools_text(report));
    for (const std::string& problem : report.results.problems()) {
        text += line("not read", problem);
    }
    return text + processes(report.results);
}

/// Formats the report as one JSON object per line: the run, then each process.
inline std::string to_json(const Report& report) {
    const Results& results = report.results;
    const Outcome& outcome = report.outcome;
    Json parts = Json::array();
    for (const PlannedPart& one : report.parts) {
        parts.push_back(json_of(one, results.notes(one.part)));
    }
    Json run = {{"version", 1},
                {"program", report.arguments.program},
                {"exit_code", outcome.code},
                {"signal", outcome.signal},
                {"user_seconds", outcome.user_seconds},
                {"system_seconds", outcome.system_seconds},
                {"minor_faults", outcome.minor_faults},
                {"peak_resident_bytes", outcome.peak_resident_bytes},
                {"limit_bytes", parse_size(report.arguments.limit).value_or(0)},
                {"parts", parts},
                {"processes", results.processes()},
                {"others", json_of(results.totals_of_others(), results.others())},
                {"problems", results.problems()}};
    if (report.trace != nullptr) run["trace"] = json_of(*report.trace);
    // Arguments may be in any character set, so invalid UTF-8 is replaced.
    std::string text = json_line(run) + '\n';
    for (const ProcessResult& one : results.largest()) {
        text += tensorpool::to_json(one.snapshot) + '\n';
    }
    return text;
}

}  // namespace tensorpool::command::run
