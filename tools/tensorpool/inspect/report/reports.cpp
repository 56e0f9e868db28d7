#include "inspect/analysis.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
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

}  // namespace tensorpool::command::inspect
