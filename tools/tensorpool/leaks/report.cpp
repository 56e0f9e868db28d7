#include "leaks/observation.hpp"

#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include <nlohmann/json.hpp>

#include "common/html.hpp"

namespace tensorpool::command::leaks {
namespace {

Row row_of(const Observation& observation, std::uint64_t id, const Judgement& judged) {
    const auto iterations =
        static_cast<double>(std::max<std::uint64_t>(observation.iterations(), 1));
    Row row;
    row.site.id = id;
    row.judged = judged;
    row.slope = judged.growth / iterations;
    row.slope_uncertainty = judged.uncertainty / iterations;
    row.oldest = observation.iterations_since(judged.oldest);
    row.median_age = observation.iterations_since(judged.median);
    return row;
}

/// Removes the sites and frames that no row needs: reading the symbols of a library takes seconds.
void keep_only(HeapProfile& profile, const std::vector<Row>& rows) {
    std::erase_if(profile.sites, [&](const ProfileSite& site) {
        return std::ranges::none_of(rows, [&](const Row& row) { return row.site.id == site.id; });
    });
    profile::drop_unused_frames(profile);
}

void sort_rows(std::vector<Row>& rows) {
    std::ranges::sort(rows, std::ranges::less(), [](const Row& row) {
        return std::tuple(row.judged.verdict, -row.judged.growth, row.site.id);
    });
}

/// Rounds to whole bytes. The process may have written any value.
std::uint64_t whole(double bytes) {
    return static_cast<std::uint64_t>(std::clamp(std::round(bytes), 0.0, 0x1p62));
}

std::string headline(const Report& report, Sizes sizes) {
    const HeapProfile& profile = report.named.profile;
    std::string text =
        fmt::format("process {} ({}): {}", profile.process, printable(profile.process_name),
                    counted(report.iterations, "iteration"));
    if (!report.pace.is_by_marks()) {
        text += fmt::format(" of {:g} s", report.pace.seconds);
    } else if (!report.pace.mark.empty()) {
        text += fmt::format(" by marks {}", printable(report.pace.mark));
    } else {
        text += " by marks";
    }
    text += fmt::format(" in {:.3g} s", report.seconds);
    if (report.profiles != report.iterations + 1) {
        text += fmt::format(", {} profiles", report.profiles);
    }
    return text +
           fmt::format(", one sample per {}\n",
                       format_size(std::max(profile.interval, profile.mean_distance), sizes));
}

std::string summary(const Report& report) {
    if (report.rows.empty()) {
        return fmt::format("none of {} grows", counted(report.steady, "site"));
    }
    return fmt::format("{} of {} grow; {}", report.rows.size(),
                       counted(report.rows.size() + report.steady, "site"),
                       counted(report.leaks(), "leak"));
}

std::vector<Cell> cells_of(const Report& report, const Row& row, Sizes sizes) {
    return {{std::string(to_string(row.judged.verdict))},
            size_cell(whole(row.slope), sizes),
            {"+/- " + format_size(whole(row.slope_uncertainty), sizes)},
            size_cell(whole(row.judged.growth), sizes),
            size_cell(row.site.live_bytes, sizes),
            number_cell(row.oldest),
            number_cell(row.median_age),
            profile::line_cell(report.named, row.site)};
}

std::string stack_text(const Report& report, const Row& row) {
    std::string text;
    for (const std::string& call : profile::short_stack_of(report.named, row.site)) {
        text += "\n    " + call;
    }
    return text;
}

using Json = nlohmann::ordered_json;

Json json_of(const Report& report, const Row& row) {
    Json json = {{"verdict", to_string(row.judged.verdict)},
                 {"bytes_per_iteration", row.slope},
                 {"bytes_per_iteration_uncertainty", row.slope_uncertainty},
                 {"growth_bytes", row.judged.growth},
                 {"growth_uncertainty_bytes", row.judged.uncertainty},
                 {"live_bytes", row.site.live_bytes},
                 {"oldest_iterations", row.oldest},
                 {"median_age_iterations", row.median_age},
                 {"live_bytes_by_profile", row.live},
                 {"line", profile::line_of(report.named, row.site)}};
    json["stack"] = profile::stack_of(report.named, row.site);
    return json;
}

}  // namespace

std::uint64_t Report::leaks() const noexcept {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        rows, [](const Row& row) { return row.judged.verdict == Verdict::leak; }));
}

Report judge(const Observation& observation, const Pace& pace) {
    Report report{.pace = pace,
                  .iterations = observation.iterations(),
                  .profiles = observation.profiles(),
                  .seconds = observation.seconds(),
                  .rows = {},
                  .named = {}};
    HeapProfile last = observation.last();
    for (const auto& [id, history] : observation.sites()) {
        const Judgement judged = judge(history, static_cast<double>(last.interval));
        if (judged.verdict == Verdict::steady) {
            ++report.steady;
        } else {
            report.rows.push_back(row_of(observation, id, judged));
            report.rows.back().live = history.live;
        }
    }
    sort_rows(report.rows);
    keep_only(last, report.rows);
    report.named = profile::name_frames(std::move(last), profile::Value::live);
    for (const ProfileSite& site : report.named.profile.sites) {
        std::ranges::find(report.rows, site.id, [](const Row& row) { return row.site.id; })->site =
            site;
    }
    return report;
}

std::string to_text(const Report& report, Sizes sizes) {
    std::string text = headline(report, sizes) + summary(report);
    if (report.rows.empty()) return text;
    Table table;
    table.columns = {{"verdict", Side::left},
                     {"per iteration"},
                     {"", Side::left},
                     {"growth"},
                     {"live"},
                     {"oldest"},
                     {"median age"},
                     {"allocated at", Side::left}};
    for (const Row& row : report.rows) table.rows.push_back(cells_of(report, row, sizes));
    const std::vector<std::string> lines = lay_out(table, any_width);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += '\n' + lines[i];
        if (i == 0 || report.rows[i - 1].judged.verdict != Verdict::leak) continue;
        text += stack_text(report, report.rows[i - 1]);
    }
    return text;
}

std::string to_json(const Report& report) {
    const HeapProfile& profile = report.named.profile;
    Json json = {{"process", profile.process},      {"process_name", profile.process_name},
                 {"iterations", report.iterations}, {"profiles", report.profiles},
                 {"seconds", report.seconds},       {"interval", profile.interval},
                 {"leaks", report.leaks()},         {"steady_sites", report.steady}};
    json["sites"] = Json::array();
    for (const Row& row : report.rows) json["sites"].push_back(json_of(report, row));
    return json_line(json);
}

}  // namespace tensorpool::command::leaks
