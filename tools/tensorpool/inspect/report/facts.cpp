#include <fmt/format.h>

#include "common/html.hpp"
#include "inspect/report/sections.hpp"

namespace tensorpool::command::inspect {
namespace {

std::string count(std::uint64_t number) {
    return format_count(static_cast<double>(number));
}

/// Returns "9.1% more than requested"; "" if there is nothing to compare with.
std::string more_than(std::uint64_t bytes, std::uint64_t base) {
    if (base == 0 || bytes < base) return "";
    const double part = static_cast<double>(bytes - base) / static_cast<double>(base);
    return fmt::format("{} more than requested", format_part(part));
}

std::string names_of(const Analysis& analysis) {
    constexpr std::size_t max_names = 4;
    std::string names;
    for (std::size_t i = 0; i < analysis.processes.size() && i < max_names; ++i) {
        const trace::RecordedProcess& process = analysis.processes[i].process;
        names += fmt::format("{}{} ({})", i == 0 ? "" : ", ",
                             process.name.empty() ? "?" : process.name, process.number);
    }
    const std::size_t count = analysis.processes.size();
    return count > max_names ? fmt::format("{} and {} more", names, count - max_names) : names;
}

/// Returns "held then  178 MiB  4.09% more than requested; at most 198 MiB".
Fact held_fact(const Timeline& timeline, Sizes sizes) {
    const Level& level = timeline.peak.level;
    const std::string more = more_than(level.held_bytes, level.alive_bytes);
    return {"held then", format_size(level.held_bytes, sizes),
            fmt::format("{}{}at most {}", more, more.empty() ? "" : "; ",
                        format_size(timeline.max_held_bytes, sizes))};
}

/// Returns "plan needs  170 MiB  0.0123% above the lower bound, if all blocks were known".
Fact plan_fact(const Planned& planned, Sizes sizes) {
    const std::uint64_t bound = planned.lower_bound_bytes;
    std::string note = "the optimum, if all blocks were known in advance";
    if (!planned.optimal) {
        note = fmt::format("{} above the lower bound, if all blocks were known in advance",
                           gap_text(planned.peak_bytes, bound));
        note += planned.searched ? "" : "; greedy: `tensorpool plan` may find less";
    }
    return {"plan needs", format_size(planned.peak_bytes, sizes), note};
}

void add_peak(std::vector<Fact>& facts, const Analysis& analysis, Sizes sizes) {
    const Moment& peak = analysis.timeline.peak;
    const Level& level = peak.level;
    const std::uint64_t first =
        analysis.timeline.moments.empty() ? 0 : analysis.timeline.moments.front().time_ns;
    const std::uint64_t in = peak.time_ns > first ? peak.time_ns - first : 0;
    facts.push_back({"lower bound", format_size(level.alive_bytes, sizes),
                     fmt::format("maximum alive at once, in {} blocks, {} after the first call",
                                 count(level.blocks), format_ns(in))});
    if (analysis.planned.made) facts.push_back(plan_fact(analysis.planned, sizes));
    if (analysis.timeline.tells_held) facts.push_back(held_fact(analysis.timeline, sizes));
    facts.push_back({"blocks then", format_size(level.block_bytes, sizes),
                     more_than(level.block_bytes, level.alive_bytes)});
    facts.push_back({"pages then", format_size(level.page_bytes, sizes),
                     more_than(level.page_bytes, level.alive_bytes)});
    facts.push_back({"addresses used", format_size(level.used_bytes, sizes),
                     "by any block up to then: held if nothing were ever released"});
}

}  // namespace

std::vector<Fact> facts_of(const Analysis& analysis, Sizes sizes) {
    const Totals& totals = analysis.totals;
    std::vector<Fact> facts;
    add_peak(facts, analysis, sizes);
    facts.push_back({"calls", count(totals.calls),
                     fmt::format("in {}, on {} thread{}", format_ns(totals.duration_ns),
                                 totals.threads, totals.threads == 1 ? "" : "s")});
    facts.push_back({"allocations", count(totals.allocations),
                     format_size(totals.allocated_bytes, sizes) + " requested in total"});
    facts.push_back({"refused", count(totals.refusals), "requests that failed"});
    facts.push_back({"processes", count(analysis.processes.size()), names_of(analysis)});
    facts.push_back({"dropped", count(totals.dropped), "entries, because a ring was full"});
    return facts;
}

std::vector<std::string> doubts_of(const Analysis& analysis) {
    std::vector<std::string> doubts;
    const Totals& totals = analysis.totals;
    if (totals.dropped > 0) {
        doubts.push_back(fmt::format(
            "{} entries were dropped: blocks whose frees are missing count as alive until their "
            "address is reused.",
            totals.dropped));
    }
    if (totals.cut_bytes > 0) {
        doubts.push_back(fmt::format("The file is cut: its last {} bytes are not a complete chunk.",
                                     totals.cut_bytes));
    }
    for (const ProcessRow& row : analysis.processes) {
        if (row.process.from_start) continue;
        doubts.push_back(fmt::format(
            "Process {} ran before it was recorded: of the older blocks, only those that were "
            "freed are known.",
            row.process.number));
    }
    for (const std::string& problem : analysis.code_problems) {
        doubts.push_back("No names for code of " + problem + '.');
    }
    return doubts;
}

}  // namespace tensorpool::command::inspect
