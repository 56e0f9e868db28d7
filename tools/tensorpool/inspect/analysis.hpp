#pragma once

/// @file
/// The analysis of a recording for `tensorpool inspect`, and its reports as text, JSON and HTML.

#include <stdexcept>

#include "common/table.hpp"
#include "common/units.hpp"
#include "inspect/timeline.hpp"

namespace tensorpool::command::inspect {

struct Planned {
    bool made = false;      ///< false: the sizes in a damaged file exceed any memory
    bool searched = false;  ///< searched after the greedy orders, for at most a fifth of a second
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    bool optimal = false;
    PlanMethod method = PlanMethod::none;
};

/// The blocks with a lifetime of at least `from`, and below the next row's `from`. Rows are powers
/// of ten.
struct LifetimeRow {
    std::uint64_t from = 0;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

/// Histograms of lifetimes, for blocks whose beginning and end were both recorded. A block that was
/// resized in place counts once. The first row is from 0; the last has no upper limit.
struct Lifetimes {
    std::vector<LifetimeRow> by_time;   ///< in nanoseconds, the second row from 1 µs
    std::vector<LifetimeRow> by_calls;  ///< in calls of all threads, the second row from 10
};

struct SizeRow {
    std::uint64_t bytes = 0;  ///< size of each request
    std::uint64_t requests = 0;
    std::uint64_t total() const noexcept { return bytes * requests; }
};

struct ProcessRow {
    trace::RecordedProcess process;
    std::uint64_t threads = 0;
    std::uint64_t calls = 0;
    std::uint64_t peak_bytes = 0;  ///< maximum alive at once in this process
};

struct Totals {
    std::uint64_t threads = 0;
    std::uint64_t calls = 0;
    std::uint64_t allocations = 0;
    std::uint64_t allocated_bytes = 0;  ///< requested
    std::uint64_t refusals = 0;
    std::uint64_t duration_ns = 0;  ///< from the first call to the last
    std::uint64_t dropped = 0;
    std::uint64_t cut_bytes = 0;
};

/// The blocks alive at some moment, by source, scope and call site.
struct Holdings {
    std::vector<Share> by_source;
    std::vector<Share> by_scope;
    Sites by_site;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

struct Analysis {
    Totals totals;
    std::vector<ProcessRow> processes;
    Timeline timeline;
    Holdings at_peak;
    Planned planned;                ///< for all blocks of all processes
    Holdings left;                  ///< at the end of processes whose recording is complete
    bool any_ended = false;         ///< whether any recording has such an end
    std::uint64_t gone_blocks = 0;  ///< blocks in use when their pool ended
    std::uint64_t gone_bytes = 0;
    std::vector<SizeRow> sizes_by_bytes;
    std::vector<SizeRow> sizes_by_requests;
    Lifetimes lifetimes;
    std::vector<std::string> code_problems;  ///< the reasons why frames have no names
};

struct Fact {
    std::string name;
    std::string value;
    std::string note;  ///< "": none
};

struct Section {
    std::string title;
    std::string note = {};  ///< sentences; "": none
    Table table = {};       ///< with texts of the trace that are not yet escaped
    /// Detail lines of each row; empty if there are none.
    std::vector<std::vector<std::string>> details = {};
};

/// Returns the facts, the most important first.
std::vector<Fact> facts_of(const Analysis& analysis, Sizes sizes);
/// Returns sentences about what makes the values inexact.
std::vector<std::string> doubts_of(const Analysis& analysis);
/// Returns the tables that have rows. `top` is the maximum number of rows in long tables.
std::vector<Section> sections_of(const Analysis& analysis, Sizes sizes, std::size_t top);

std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);
/// Returns one line of JSON without a newline; sizes are in bytes, times in nanoseconds.
std::string json_report(const Analysis& analysis);
std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);

inline constexpr std::size_t max_searched = 20'000;
inline constexpr std::chrono::milliseconds search_budget{200};

/// A histogram with rows from 0, from `second`, from ten times that, and so on up to `last`.
class Histogram {
public:
    Histogram(std::uint64_t second, std::uint64_t last) : rows_(1) {
        for (std::uint64_t from = second; from <= last; from *= 10) rows_.push_back({from, 0, 0});
    }
    void add(std::uint64_t length, std::uint64_t bytes) {
        auto row = rows_.rbegin();
        while (row->from > length) ++row;
        ++row->blocks;
        row->bytes += bytes;
    }
    std::vector<LifetimeRow> take() { return std::move(rows_); }

private:
    std::vector<LifetimeRow> rows_;
};

/// Returns all sizes that were requested. Blocks from before the recording are not counted.
inline std::vector<SizeRow> all_sizes(const History& history) {
    std::unordered_map<std::uint64_t, std::uint64_t> requests;
    for (const Lifetime& lifetime : history.lifetimes()) {
        if (lifetime.begin != Lifetime::none && !lifetime.continues) ++requests[lifetime.bytes];
    }
    std::vector<SizeRow> rows;
    for (const auto& [bytes, count] : requests) rows.push_back({bytes, count});
    return rows;
}

// Equal rows are sorted by size, the larger first, so that the order is deterministic.
template <class Key>
std::vector<SizeRow> largest(std::vector<SizeRow> rows, std::size_t max_rows, Key key) {
    std::ranges::sort(rows, std::ranges::greater(), [&](const SizeRow& row) {
        return std::pair(std::invoke(key, row), row.bytes);
    });
    rows.resize(std::min(rows.size(), max_rows));
    return rows;
}

inline Totals totals_of(const History& history) {
    const Recording& recording = history.recording();
    Totals totals;
    totals.threads = recording.threads.size();
    totals.calls = recording.calls.size();
    totals.cut_bytes = recording.cut_bytes;
    totals.duration_ns = history.last_ns() - history.first_ns();
    for (const trace::RecordedProcess& process : recording.processes) {
        totals.dropped += process.dropped;
    }
    for (const trace::Call& call : recording.calls) {
        if (call.action == TraceAction::refuse) ++totals.refusals;
    }
    for (const Lifetime& lifetime : history.lifetimes()) {
        if (lifetime.begin == Lifetime::none || lifetime.continues) continue;
        ++totals.allocations;
        totals.allocated_bytes += lifetime.bytes;
    }
    return totals;
}

inline std::vector<ProcessRow> processes_of(const Recording& recording, const Timeline& timeline) {
    std::vector<ProcessRow> rows;
    for (const trace::RecordedProcess& process : recording.processes) rows.push_back({process});
    for (const trace::RecordedThread& thread : recording.threads) ++rows[thread.process].threads;
    for (const trace::Call& call : recording.calls) {
        ++rows[recording.threads[call.thread].process].calls;
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].peak_bytes = timeline.process_peaks[i];
    return rows;
}

inline void add_up(Holdings& holdings) {
    for (const Share& share : holdings.by_source) {
        holdings.blocks += share.blocks;
        holdings.bytes += share.bytes;
    }
}

inline void find_left(const History& history, Analysis& analysis) {
    for (const ProcessRow& row : analysis.processes) analysis.any_ended |= row.process.ended;
    const Recording& recording = history.recording();
    for (const Lifetime& lifetime : history.lifetimes()) {
        if (lifetime.end == Lifetime::none) continue;
        const bool gone = recording.calls[lifetime.end].action == TraceAction::gone;
        if (!gone || recording.sources[lifetime.source].kind != TraceSource::pool) continue;
        ++analysis.gone_blocks;
        analysis.gone_bytes += lifetime.bytes;
    }
}

/// Plans all blocks in one block of memory, each aligned to 64 bytes as in a pool, or as requested
/// if that is more. For more than 20,000 blocks it uses only greedy orders, so that the report is
/// not delayed.
inline Planned plan_of(const History& history) {
    const std::vector<TensorLifetime> lifetimes = steps_of(history.recording(), history.order());
    const bool searched = lifetimes.size() <= max_searched;
    const std::chrono::nanoseconds budget = searched ? search_budget : std::chrono::nanoseconds(0);
    try {
        const MemoryPlan plan = plan_memory(lifetimes, {.budget = budget});
        return {true, searched, plan.peak_bytes, plan.lower_bound_bytes, plan.optimal, plan.method};
    } catch (const std::invalid_argument&) {
        return {};
    }
}

inline Lifetimes lifetimes_of(const History& history) {
    Histogram by_time(1'000, 100'000'000'000);  // 1 us to 100 s
    Histogram by_calls(10, 10'000'000);
    const auto& calls = history.recording().calls;
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        const std::uint32_t born = history.facts(i).born;
        if (born == BlockFacts::none || lifetime.end == Lifetime::none || lifetime.end < born)
            continue;
        if (calls[lifetime.end].action == TraceAction::resize) continue;  // the block continues
        by_time.add(history.time_of(lifetime.end) - history.time_of(born), lifetime.bytes);
        by_calls.add(lifetime.end - born, lifetime.bytes);
    }
    return {by_time.take(), by_calls.take()};
}

/// Analyses a recording. `top` is the maximum number of sizes and call sites, at least 1.
inline Analysis analyse(const Recording& recording, std::size_t top) {
    const History history(recording);
    const Groups sources(history, GroupBy::source);
    const Groups scopes(history, GroupBy::scope);
    FrameNames names(recording);
    Analysis analysis;
    analysis.totals = totals_of(history);
    analysis.timeline = timeline_of(history, sources, scopes, usual_stretches);
    analysis.processes = processes_of(recording, analysis.timeline);
    const std::uint32_t peak = analysis.timeline.peak_call;
    const auto at_peak = [&](const Lifetime& lifetime) {
        return peak == Lifetime::none ? lifetime.begin == Lifetime::none
                                      : history.is_alive(lifetime, peak);
    };
    const auto is_left_over = [&](const Lifetime& lifetime) { return is_left(history, lifetime); };
    analysis.at_peak = {shares_of(history, sources, at_peak), shares_of(history, scopes, at_peak),
                        sites_of(history, names, top, at_peak)};
    analysis.left = {shares_of(history, sources, is_left_over),
                     shares_of(history, scopes, is_left_over),
                     sites_of(history, names, top, is_left_over)};
    analysis.planned = plan_of(history);
    add_up(analysis.at_peak);
    add_up(analysis.left);
    find_left(history, analysis);
    const std::vector<SizeRow> sizes = all_sizes(history);
    analysis.sizes_by_bytes = largest(sizes, top, &SizeRow::total);
    analysis.sizes_by_requests = largest(sizes, top, &SizeRow::requests);
    analysis.lifetimes = lifetimes_of(history);
    analysis.code_problems = names.problems();
    return analysis;
}

}  // namespace tensorpool::command::inspect
