#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "inspect/analysis.hpp"
#include "inspect/model/model_report.hpp"

namespace tensorpool::command::inspect {
namespace {

using Json = nlohmann::ordered_json;

template <class Read>
Json series(const Timeline& timeline, const std::string& name, Read read) {
    Json values = Json::array();
    for (const Moment& moment : timeline.moments) values.push_back(read(moment));
    return {{"name", name}, {"values", std::move(values)}};
}

Json grouped(const Timeline& timeline, const char* title, const std::vector<std::string>& names,
             std::vector<std::uint64_t> Moment::*bytes) {
    Json all = Json::array();
    for (std::size_t k = 0; k < names.size(); ++k) {
        all.push_back(series(timeline, names[k], [&](const Moment& of) { return (of.*bytes)[k]; }));
    }
    return {{"title", title}, {"note", ""}, {"stacked", true}, {"series", std::move(all)}};
}

Json levels(const Timeline& timeline) {
    std::string note =
        "The lower bound, with rounding, with the rest of each page, and all addresses that any "
        "block had so far.";
    std::vector<std::pair<const char*, std::uint64_t Level::*>> fields{
        {"alive", &Level::alive_bytes},
        {"in blocks", &Level::block_bytes},
        {"on pages", &Level::page_bytes},
        {"addresses used", &Level::used_bytes}};
    if (timeline.tells_held) {
        note += " Held is the memory that pools, arenas and scratches had taken.";
        fields.emplace_back("held", &Level::held_bytes);
    }
    Json all = Json::array();
    for (const auto& [name, field] : fields) {
        all.push_back(
            series(timeline, name, [f = field](const Moment& of) { return of.level.*f; }));
    }
    return {
        {"title", "Memory needed"}, {"note", note}, {"stacked", false}, {"series", std::move(all)}};
}

Json json_of(const Timeline& timeline) {
    const std::uint64_t first = timeline.moments.front().time_ns;
    Json json{{"t", Json::array()}, {"alive", Json::array()}};
    for (const Moment& moment : timeline.moments) {
        json["t"].push_back(moment.time_ns - first);
        json["alive"].push_back(moment.level.alive_bytes);
    }
    json["charts"] = {
        grouped(timeline, "Bytes alive, by pool, arena and scratch", timeline.sources,
                &Moment::by_source),
        grouped(timeline, "Bytes alive, by scope", timeline.scopes, &Moment::by_scope),
        levels(timeline)};
    return json;
}

Json json_of(const Section& section) {
    Json columns = Json::array();
    for (const Column& column : section.table.columns) {
        columns.push_back({{"title", column.title}, {"number", column.side == Side::right}});
    }
    Json rows = Json::array();
    for (const auto& cells : section.table.rows) {
        Json& row = rows.emplace_back(Json::array());
        for (const Cell& cell : cells) row.push_back(cell.text);
    }
    return {{"title", section.title},
            {"note", section.note},
            {"columns", std::move(columns)},
            {"rows", std::move(rows)},
            {"details", section.details}};
}

using model::paragraph;

std::string table_of_trace(Table table) {
    for (auto& row : table.rows) {
        for (Cell& cell : row) cell.text = printable(cell.text);
    }
    return table_text(table);
}

Json to_json(const Level& level, bool tells_held) {
    Json json{{"blocks", level.blocks},
              {"alive_bytes", level.alive_bytes},
              {"block_bytes", level.block_bytes},
              {"page_bytes", level.page_bytes},
              {"used_bytes", level.used_bytes}};
    if (tells_held) json["held_bytes"] = level.held_bytes;
    return json;
}

Json to_json(const std::vector<LifetimeRow>& rows, const char* from) {
    Json list = Json::array();
    for (const LifetimeRow& row : rows) {
        list.push_back({{from, row.from}, {"blocks", row.blocks}, {"bytes", row.bytes}});
    }
    return list;
}

Json timeline(const Timeline& timeline) {
    Json moments = Json::array();
    for (const Moment& moment : timeline.moments) {
        Json entry = {{"time_ns", moment.time_ns}};
        entry.update(to_json(moment.level, timeline.tells_held));
        entry["by_source"] = moment.by_source;
        entry["by_scope"] = moment.by_scope;
        moments.push_back(std::move(entry));
    }
    return {{"sources", timeline.sources}, {"scopes", timeline.scopes}, {"moments", moments}};
}

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

Cell name_cell(std::string name) {
    return {std::move(name), 0};
}

std::vector<ProcessRow> largest(std::vector<ProcessRow> rows, std::size_t top) {
    if (rows.size() <= top) return rows;
    std::ranges::stable_sort(rows, std::ranges::greater{}, &ProcessRow::peak_bytes);
    rows.resize(top);
    return rows;
}

Section processes(const Analysis& analysis, Sizes sizes, std::size_t top) {
    Section section{"Processes"};
    const std::size_t count = analysis.processes.size();
    if (count > top) {
        section.note = fmt::format("The {} of {} with the most bytes alive.", top, count);
    }
    section.table.columns = {text_column("NAME"),       count_column("PID"),
                             count_column("THREADS"),   count_column("CALLS"),
                             size_column("MOST ALIVE"), count_column("DROPPED"),
                             text_column("RECORDED")};
    for (const ProcessRow& row : largest(analysis.processes, top)) {
        const trace::RecordedProcess& process = row.process;
        const std::string recorded =
            fmt::format("{} {}", process.from_start ? "from its start" : "while it ran",
                        process.ended ? "to the end" : "without an end");
        section.table.rows.push_back({name_cell(process.name.empty() ? "?" : process.name),
                                      number_cell(process.number), count_cell(row.threads),
                                      count_cell(row.calls), size_cell(row.peak_bytes, sizes),
                                      count_cell(process.dropped), name_cell(recorded)});
    }
    return section;
}

Section shares(std::string title, std::string note, const char* column,
               const std::vector<Share>& shares, std::uint64_t whole, Sizes sizes,
               std::size_t top) {
    Section section{std::move(title), std::move(note)};
    section.table.columns = {text_column(column), count_column("BLOCKS"), size_column("ASKED FOR"),
                             size_column("IN BLOCKS"), part_column("PART")};
    for (std::size_t i = 0; i < std::min(shares.size(), top); ++i) {
        const Share& share = shares[i];
        section.table.rows.push_back(
            {name_cell(share.name), count_cell(share.blocks), size_cell(share.bytes, sizes),
             size_cell(share.block_bytes, sizes), part_cell(share.bytes, whole)});
    }
    return section;
}

Section sites(std::string title, const Sites& sites, Sizes sizes) {
    Section section{
        std::move(title),
        fmt::format("Estimated from {} sampled call stacks. PART is the part of the {} that "
                    "they represent.",
                    sites.samples, format_size(static_cast<std::uint64_t>(sites.bytes), sizes))};
    section.table.columns = {text_column("CALL SITE"), size_column("ABOUT"), count_column("BLOCKS"),
                             count_column("SAMPLES"), part_column("PART")};
    for (const Site& site : sites.largest) {
        section.table.rows.push_back({name_cell(site.name),
                                      size_cell(static_cast<std::uint64_t>(site.bytes), sizes),
                                      count_cell(site.blocks), count_cell(site.samples),
                                      part_cell(site.bytes / std::max(sites.bytes, 1.0))});
        section.details.push_back(site.stack);
    }
    return section;
}

Section sizes_of(std::string title, const std::vector<SizeRow>& rows, const Totals& totals,
                 Sizes sizes) {
    Section section{std::move(title)};
    section.table.columns = {size_column("SIZE"), count_column("REQUESTS"), size_column("TOGETHER"),
                             part_column("PART")};
    for (const SizeRow& row : rows) {
        section.table.rows.push_back({size_cell(row.bytes, sizes), count_cell(row.requests),
                                      size_cell(row.total(), sizes),
                                      part_cell(row.total(), totals.allocated_bytes)});
    }
    return section;
}

Section lifetimes(std::string title, std::string note, const char* column,
                  const std::vector<LifetimeRow>& rows, Sizes sizes,
                  std::string (*format)(std::uint64_t)) {
    Section section{std::move(title), std::move(note)};
    section.table.columns = {text_column(column), count_column("BLOCKS"), part_column("PART"),
                             size_column("BYTES")};
    std::uint64_t blocks = 0;
    for (const LifetimeRow& row : rows) blocks += row.blocks;
    for (std::size_t i = 0; i < rows.size() && blocks > 0; ++i) {
        const bool last = i + 1 == rows.size();
        const std::string range =
            last ? fmt::format("from {}", format(rows[i].from))
                 : fmt::format("{} to {}", format(rows[i].from), format(rows[i + 1].from));
        section.table.rows.push_back({name_cell(range), count_cell(rows[i].blocks),
                                      part_cell(rows[i].blocks, blocks),
                                      size_cell(rows[i].bytes, sizes)});
    }
    return section;
}

double lost_part(const Level& level) {
    if (level.page_bytes <= level.alive_bytes) return 0;
    return static_cast<double>(level.page_bytes - level.alive_bytes) /
           static_cast<double>(level.page_bytes);
}

Section fragmentation(const Timeline& timeline, Sizes sizes) {
    constexpr std::size_t shown = 12;
    Section section{
        "Fragmentation over time",
        "Each row is the moment with the most bytes alive in a twelfth of the time. IN BLOCKS "
        "includes rounding, ON PAGES the rest of every page with a block, USED all addresses that "
        "any block had so far. LOST is the part of the bytes on pages that was not requested."};
    section.table.columns = {count_column("TIME"),    count_column("BLOCKS"),
                             size_column("ALIVE"),    size_column("IN BLOCKS"),
                             size_column("ON PAGES"), size_column("USED"),
                             part_column("LOST")};
    if (timeline.tells_held) {
        section.note += " HELD is the memory that pools, arenas and scratches had taken.";
        section.table.columns.push_back(size_column("HELD"));
    }
    const std::size_t step = std::max<std::size_t>(timeline.moments.size() / shown, 1);
    for (std::size_t i = 0; i + step <= timeline.moments.size(); i += step) {
        const auto part = std::span(timeline.moments).subspan(i, step);
        const Moment& moment = *std::ranges::max_element(
            part, {}, [](const Moment& one) { return one.level.alive_bytes; });
        const Level& level = moment.level;
        const std::uint64_t time = moment.time_ns - timeline.moments.front().time_ns;
        section.table.rows.push_back({{format_ns(time), static_cast<double>(time)},
                                      count_cell(level.blocks),
                                      size_cell(level.alive_bytes, sizes),
                                      size_cell(level.block_bytes, sizes),
                                      size_cell(level.page_bytes, sizes),
                                      size_cell(level.used_bytes, sizes),
                                      part_cell(lost_part(level))});
        if (timeline.tells_held) {
            section.table.rows.back().push_back(size_cell(level.held_bytes, sizes));
        }
    }
    return section;
}

std::string left_note(const Analysis& analysis, Sizes sizes) {
    return fmt::format(
        "{} in {} blocks were never freed. Not all of them need be leaks: blocks that live as "
        "long as the program are included.",
        format_size(analysis.left.bytes, sizes), analysis.left.blocks);
}

void add_left(std::vector<Section>& sections, const Analysis& analysis, Sizes sizes,
              std::size_t top) {
    const Holdings& left = analysis.left;
    sections.push_back(shares("Alive at the end, by pool, arena and scratch",
                              left_note(analysis, sizes), "FROM", left.by_source, left.bytes, sizes,
                              top));
    sections.push_back(
        shares("Alive at the end, by scope", "", "SCOPE", left.by_scope, left.bytes, sizes, top));
    sections.push_back(sites("Alive at the end, by call site", left.by_site, sizes));
}

}  // namespace

// The library finds these by the types of their arguments.

static void to_json(Json& json, const Share& share) {
    json = {{"name", share.name},
            {"blocks", share.blocks},
            {"bytes", share.bytes},
            {"block_bytes", share.block_bytes}};
}

static void to_json(Json& json, const Site& site) {
    json = {{"name", site.name},
            {"estimated_bytes", site.bytes},
            {"estimated_blocks", site.blocks},
            {"samples", site.samples},
            {"stack", site.stack}};
}

static void to_json(Json& json, const Holdings& holdings) {
    json = {{"blocks", holdings.blocks},
            {"bytes", holdings.bytes},
            {"by_source", holdings.by_source},
            {"by_scope", holdings.by_scope},
            {"by_site", holdings.by_site.largest}};
}

static void to_json(Json& json, const SizeRow& row) {
    json = {{"bytes", row.bytes}, {"requests", row.requests}};
}

static void to_json(Json& json, const ProcessRow& row) {
    json = {{"name", row.process.name},
            {"process", row.process.number},
            {"threads", row.threads},
            {"calls", row.calls},
            {"peak_bytes", row.peak_bytes},
            {"dropped", row.process.dropped},
            {"from_start", row.process.from_start},
            {"ended", row.process.ended},
            {"stack_interval_bytes", row.process.stack_interval}};
}

static void to_json(Json& json, const Planned& planned) {
    if (!planned.made) return;
    json = {{"peak_bytes", planned.peak_bytes},
            {"lower_bound_bytes", planned.lower_bound_bytes},
            {"method", to_string(planned.method)},
            {"searched", planned.searched},
            {"optimal", planned.optimal}};
}

static void to_json(Json& json, const Totals& totals) {
    json = {{"threads", totals.threads},         {"calls", totals.calls},
            {"allocations", totals.allocations}, {"allocated_bytes", totals.allocated_bytes},
            {"refusals", totals.refusals},       {"duration_ns", totals.duration_ns},
            {"dropped", totals.dropped},         {"cut_bytes", totals.cut_bytes}};
}

static void to_json(Json& json, const Fact& fact) {
    json = {fact.name, fact.value, fact.note};
}

std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top) {
    Json sections = Json::array();
    for (const Section& section : sections_of(analysis, sizes, top)) {
        sections.push_back(json_of(section));
    }
    return html_page("report.html", {{"title", path.substr(path.rfind('/') + 1)},
                                     {"plain_bytes", sizes == Sizes::bytes},
                                     {"facts", facts_of(analysis, sizes)},
                                     {"notes", doubts_of(analysis)},
                                     {"timeline", json_of(analysis.timeline)},
                                     {"sections", std::move(sections)}})
        .text;
}

std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top) {
    std::string text = printable(path) + "\n\n";
    for (const Fact& fact : facts_of(analysis, sizes))
        text += model::fact_line(fact.name, fact.value, fact.note);
    const std::vector<std::string> doubts = doubts_of(analysis);
    if (!doubts.empty()) text += '\n';
    for (const std::string& doubt : doubts) text += paragraph(doubt);
    for (const Section& section : sections_of(analysis, sizes, top)) {
        text += '\n' + section.title + '\n';
        if (!section.note.empty()) text += paragraph(section.note, "  ");
        text += '\n' + table_of_trace(section.table);
    }
    return text;
}

std::string json_report(const Analysis& analysis) {
    Json peak = {{"time_ns", analysis.timeline.peak.time_ns}};
    peak.update(to_json(analysis.timeline.peak.level, analysis.timeline.tells_held));
    if (analysis.timeline.tells_held) peak["most_held_bytes"] = analysis.timeline.max_held_bytes;
    peak.update(Json(analysis.at_peak));
    Json left = analysis.left;
    left["known"] = analysis.any_ended;
    left["gone_blocks"] = analysis.gone_blocks;
    left["gone_bytes"] = analysis.gone_bytes;
    const Json report = {{"totals", analysis.totals},
                         {"processes", analysis.processes},
                         {"peak", std::move(peak)},
                         {"plan", analysis.planned},
                         {"left", std::move(left)},
                         {"sizes_by_bytes", analysis.sizes_by_bytes},
                         {"sizes_by_requests", analysis.sizes_by_requests},
                         {"lifetimes_ns", to_json(analysis.lifetimes.by_time, "from_ns")},
                         {"lifetimes_calls", to_json(analysis.lifetimes.by_calls, "from_calls")},
                         {"timeline", timeline(analysis.timeline)},
                         {"code_problems", analysis.code_problems}};
    return json_line(report);
}

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

std::vector<Section> sections_of(const Analysis& analysis, Sizes sizes, std::size_t top) {
    const Holdings& peak = analysis.at_peak;
    std::vector<Section> sections;
    sections.push_back(processes(analysis, sizes, top));
    sections.push_back(shares("At the peak, by pool, arena and scratch", "", "FROM", peak.by_source,
                              peak.bytes, sizes, top));
    sections.push_back(
        shares("At the peak, by scope", "", "SCOPE", peak.by_scope, peak.bytes, sizes, top));
    sections.push_back(sites("At the peak, by call site", peak.by_site, sizes));
    sections.push_back(fragmentation(analysis.timeline, sizes));
    sections.push_back(sizes_of("Sizes with the most bytes in total", analysis.sizes_by_bytes,
                                analysis.totals, sizes));
    sections.push_back(sizes_of("Sizes with the most requests", analysis.sizes_by_requests,
                                analysis.totals, sizes));
    sections.push_back(lifetimes("Lifetimes of blocks",
                                 "Blocks whose beginning and end were both recorded.", "TIME",
                                 analysis.lifetimes.by_time, sizes, format_ns));
    sections.push_back(lifetimes("Lifetimes of blocks in calls",
                                 "Calls of all threads from beginning to end.", "CALLS",
                                 analysis.lifetimes.by_calls, sizes, count));
    add_left(sections, analysis, sizes, top);
    std::erase_if(sections, [](const Section& section) { return section.table.rows.empty(); });
    return sections;
}

}  // namespace tensorpool::command::inspect
