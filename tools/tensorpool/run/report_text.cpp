#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include <tensorpool/snapshot.hpp>

#include "common/printable.hpp"
#include "common/units.hpp"
#include "run/numbers.hpp"
#include "run/report.hpp"

namespace tensorpool::command::run {
namespace {

/// Of the others there is a line each.
constexpr std::size_t max_in_full = 3;

std::string line(std::string_view title, const std::string& text) {
    return fmt::format("  {:<8} {}\n", title, text);
}

std::string count_of(std::uint64_t count, const std::string& noun) {
    const char* const plural = noun.ends_with('s') ? "es" : "s";
    return fmt::format("{} {}{}", with_commas(count), noun, count == 1 ? "" : plural);
}

std::string ending(const Outcome& outcome) {
    if (outcome.signal == 0) return fmt::format("ended with code {}", outcome.code);
    const char* const name = ::sigabbrev_np(outcome.signal);
    return fmt::format("was ended by signal {}{}", outcome.signal,
                       name != nullptr ? fmt::format(" (SIG{})", name) : "");
}

std::string headline(const Report& report) {
    const Outcome& outcome = report.outcome;
    return fmt::format("tensorpool run: {} {}\n", printable(report.words.program.front()),
                       ending(outcome)) +
           line("cost", fmt::format("{:.2f} s user, {:.2f} s system, {} page faults, {} resident "
                                    "at most",
                                    outcome.user_seconds, outcome.system_seconds,
                                    with_commas(outcome.minor_faults),
                                    format_size(outcome.peak_resident_bytes)));
}

std::string minimum_of(const Words& words) {
    if (!words.interpose_min.empty()) return words.interpose_min;
    const char* const given = std::getenv("TENSORPOOL_INTERPOSE_MIN");
    return given != nullptr && *given != '\0' ? printable(given) : "64KiB";
}

std::string nobody(Part part) {
    if (part != Part::malloc) {
        return "no Python of the program imported it";
    }
    return "no process of the program loaded it: statically linked, with more rights than yours, "
           "or LD_PRELOAD was taken from its environment";
}

std::string part_text(const PlannedPart& planned, const PartNotes& notes, const Words& words) {
    if (!planned.is_put()) return "not put under the program: " + planned.problem;
    if (notes.programs == 0 && notes.problems.empty()) return nobody(planned.part);
    std::string text;
    if (notes.programs != 0) text = "under " + count_of(notes.programs, "program");
    if (planned.part == Part::malloc && notes.programs != 0) {
        text += ": blocks from " + minimum_of(words) + " on";
    }
    for (const std::string& problem : notes.problems) {
        text += (text.empty() ? "not put under a program: " : "; not under another: ") + problem;
    }
    return text;
}

std::string limit_text(const Results& results, const std::string& limit) {
    std::uint64_t refused = results.totals_of_others().failures;
    for (const ProcessResult& one : results.largest()) refused += one.totals.failures;
    return fmt::format("{} for the pool of each process; {} request{} refused", limit,
                       with_commas(refused), refused == 1 ? " was" : "s were");
}

bool is_private() {
    const char* const statistics = std::getenv("TENSORPOOL_STATISTICS");
    return statistics != nullptr && std::strcmp(statistics, "off") == 0;
}

std::string pools_text(const Report& report) {
    const std::uint64_t processes = report.results.processes();
    if (processes != 0) return count_of(processes, "process") + " used a pool";
    if (is_private()) return "not known: TENSORPOOL_STATISTICS=off keeps the figures private";
    const bool has_malloc = report.results.notes(Part::malloc).programs != 0;
    return has_malloc ? "none was used: no request reached " + minimum_of(report.words)
                      : "none was used";
}

std::string process_title(const ProcessResult& one) {
    return fmt::format("process {} ({}){}", one.snapshot.process,
                       printable(one.snapshot.process_name),
                       one.has_ended ? "" : ", which still runs");
}

std::string in_full(const ProcessResult& one) {
    const ProcessSnapshot& snapshot = one.snapshot;
    const std::string text = tensorpool::to_text(Snapshot{.pools = snapshot.pools,
                                                          .arenas = snapshot.arenas,
                                                          .scratches = snapshot.scratches,
                                                          .devices = snapshot.devices,
                                                          .planned = snapshot.planned,
                                                          .scopes = snapshot.scopes});
    return fmt::format("\n{}\n{}", process_title(one),
                       text.empty() ? "  what it used has gone before its end\n" : text);
}

std::string in_a_line(const std::string& title, const Totals& totals) {
    return fmt::format("{}: peak {}, {} allocations, {} refused\n", title,
                       format_size(totals.peak_bytes), with_commas(totals.allocations),
                       with_commas(totals.failures));
}

std::string processes(const Results& results) {
    std::string text;
    for (std::size_t i = 0; i < results.largest().size(); ++i) {
        const ProcessResult& one = results.largest()[i];
        if (i == max_in_full) text += '\n';
        text += i < max_in_full ? in_full(one) : in_a_line(process_title(one), one.totals);
    }
    if (results.others() == 0) return text;
    return text + in_a_line(count_of(results.others(), "process") + " more, added up",
                            results.totals_of_others());
}

}  // namespace

std::string to_text(const Report& report) {
    std::string text = headline(report);
    for (const PlannedPart& one : report.parts) {
        text +=
            line(title_of(one.part), part_text(one, report.results.notes(one.part), report.words));
    }
    if (!report.words.limit.empty()) {
        text += line("limit", limit_text(report.results, report.words.limit));
    }
    if (report.trace != nullptr) text += line("trace", report.trace->text());
    text += line("pools", pools_text(report));
    for (const std::string& problem : report.results.problems()) {
        text += line("not read", problem);
    }
    return text + processes(report.results);
}

}  // namespace tensorpool::command::run
