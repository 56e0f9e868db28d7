#include "common/html.hpp"
#include "inspect/report/reports.hpp"
#include "inspect/report/sections.hpp"

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

}  // namespace

std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top) {
    Json facts = Json::array();
    for (const Fact& fact : facts_of(analysis, sizes)) {
        facts.push_back({fact.name, fact.value, fact.note});
    }
    Json sections = Json::array();
    for (const Section& section : sections_of(analysis, sizes, top)) {
        sections.push_back(json_of(section));
    }
    return html_page("report.html", {{"title", path.substr(path.rfind('/') + 1)},
                                     {"plain_bytes", sizes == Sizes::bytes},
                                     {"facts", std::move(facts)},
                                     {"notes", doubts_of(analysis)},
                                     {"timeline", json_of(analysis.timeline)},
                                     {"sections", std::move(sections)}})
        .text;
}

}  // namespace tensorpool::command::inspect
