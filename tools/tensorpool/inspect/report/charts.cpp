#include "inspect/report/charts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "common/html.hpp"

namespace tensorpool::command::inspect {
namespace {

using Values = std::vector<std::uint64_t>;

// The coordinates of the drawing, which is stretched to the available space.
constexpr std::uint64_t width = 4800;
constexpr std::uint64_t height = 1000;
constexpr unsigned ticks = 4;

/// One chart: series of bytes, one for each moment.
struct ChartData {
    std::string id, title, note;
    bool stacked;
    std::vector<std::string> names;
    std::vector<Values> series;
};

ChartData grouped(const Timeline& timeline, std::string id, std::string title,
                  const std::vector<std::string>& names, Values Moment::*bytes) {
    ChartData data{std::move(id), std::move(title), "", true, names, {}};
    for (std::size_t k = 0; k < names.size(); ++k) {
        Values values;
        for (const Moment& moment : timeline.moments) values.push_back((moment.*bytes)[k]);
        data.series.push_back(std::move(values));
    }
    return data;
}

ChartData levels(const Timeline& timeline) {
    ChartData data{"chart-levels",
                   "Memory needed",
                   "The lower bound, with rounding, with the rest of each page, and all addresses "
                   "that any block had so far.",
                   false,
                   {"alive", "in blocks", "on pages", "addresses used"},
                   {}};
    std::vector fields{&Level::alive_bytes, &Level::block_bytes, &Level::page_bytes,
                       &Level::used_bytes};
    if (timeline.tells_held) {
        data.note += " Held is the memory that pools, arenas and scratches had taken.";
        data.names.push_back("held");
        fields.push_back(&Level::held_bytes);
    }
    for (const auto field : fields) {
        Values values;
        for (const Moment& moment : timeline.moments) values.push_back(moment.level.*field);
        data.series.push_back(std::move(values));
    }
    return data;
}

std::vector<ChartData> charts_of(const Timeline& timeline) {
    return {grouped(timeline, "chart-sources", "Bytes alive, by pool, arena and scratch",
                    timeline.sources, &Moment::by_source),
            grouped(timeline, "chart-scopes", "Bytes alive, by scope", timeline.scopes,
                    &Moment::by_scope),
            levels(timeline)};
}

/// Returns the running sums of the series if the chart is stacked, else the series.
std::vector<Values> tops_of(const ChartData& chart) {
    std::vector<Values> tops = chart.series;
    for (std::size_t k = 1; chart.stacked && k < tops.size(); ++k) {
        std::ranges::transform(tops[k], tops[k - 1], tops[k].begin(), std::plus{});
    }
    return tops;
}

/// Returns the distance of ticks: four of them are at least `max`. It is a power of two plus
/// quarters of it.
std::uint64_t tick_for(std::uint64_t max) {
    const std::uint64_t wanted = std::max<std::uint64_t>(max / ticks + (max % ticks != 0), 1);
    const std::uint64_t quarter = std::max<std::uint64_t>(std::bit_floor(wanted) / 4, 1);
    return (wanted + quarter - 1) / quarter * quarter;
}

std::uint64_t y_of(std::uint64_t bytes, std::uint64_t tick) {
    const double part = static_cast<double>(bytes) / (static_cast<double>(tick) * ticks);
    return height - static_cast<std::uint64_t>(std::lround(std::min(part, 1.0) * height));
}

Values x_of(const Timeline& timeline) {
    Values xs;
    const std::uint64_t first = timeline.moments.front().time_ns;
    const double length =
        std::max(static_cast<double>(timeline.moments.back().time_ns - first), 1.0);
    for (const Moment& moment : timeline.moments) {
        const double part = static_cast<double>(moment.time_ns - first) / length;
        xs.push_back(static_cast<std::uint64_t>(part * width));
    }
    return xs;
}

void add_points(std::string& path, const Values& xs, const Values& values, std::uint64_t tick,
                bool backwards) {
    for (std::size_t i = 0; i < xs.size(); ++i) {
        const std::size_t at = backwards ? xs.size() - 1 - i : i;
        fmt::format_to(std::back_inserter(path), "{}{},{}", path.empty() ? "M" : "L", xs[at],
                       y_of(values[at], tick));
    }
}

std::string area(std::size_t k, const Values& xs, const Values& top, const Values& bottom,
                 std::uint64_t tick) {
    std::string path;
    add_points(path, xs, top, tick, false);
    add_points(path, xs, bottom, tick, true);
    return fmt::format("<path class=\"f{}\" d=\"{}Z\"/>", k, path);
}

std::string line(std::size_t k, const Values& xs, const Values& values, std::uint64_t tick) {
    std::string path;
    add_points(path, xs, values, tick, false);
    return fmt::format("<path class=\"line l{}\" d=\"{}\"/>", k, path);
}

std::string drawing(const ChartData& chart, const Values& xs, std::uint64_t tick) {
    const std::vector<Values> tops = tops_of(chart);
    std::string svg = fmt::format(
        "<svg viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"{}\">",
        width, height, escape_html(chart.title));
    for (std::size_t k = 0; k < tops.size(); ++k) {
        const bool is_area = chart.stacked || k == 0;
        const Values zeros(xs.size(), 0);
        const Values& bottom = chart.stacked && k > 0 ? tops[k - 1] : zeros;
        svg += is_area ? area(k, xs, tops[k], bottom, tick) : line(k, xs, tops[k], tick);
    }
    for (unsigned i = 0; i <= ticks; ++i) {
        svg += fmt::format("<line class=\"grid\" x1=\"0\" x2=\"{0}\" y1=\"{1}\" y2=\"{1}\"/>",
                           width, height * i / ticks);
    }
    return svg + "</svg>";
}

std::string legend(const ChartData& chart, std::size_t peak, Sizes sizes) {
    std::string list = "<ul class=\"legend\">";
    for (std::size_t k = 0; k < chart.names.size(); ++k) {
        list += fmt::format(
            "<li><svg class=\"swatch\" aria-hidden=\"true\"><rect class=\"f{}\" width=\"100%\" "
            "height=\"100%\"/></svg><span class=\"name\">{}</span> <output>{}</output></li>",
            k, escape_html(chart.names[k]), format_size(chart.series[k][peak], sizes));
    }
    return list + "</ul>";
}

std::string labels_up(std::uint64_t tick, Sizes sizes) {
    std::string up = "<div class=\"up\" aria-hidden=\"true\">";
    for (unsigned i = 0; i <= ticks; ++i) {
        up += fmt::format("<span>{}</span>", format_size(tick * i, sizes));
    }
    return up + "</div>";
}

std::string labels_along(std::uint64_t length_ns) {
    std::string along = "<div class=\"along\" aria-hidden=\"true\">";
    for (unsigned i = 0; i <= ticks; ++i) {
        along += fmt::format("<span>{}</span>", format_ns(length_ns / ticks * i));
    }
    return along + "</div>";
}

std::size_t index_of_peak(const Timeline& timeline) {
    const auto peak = std::ranges::max_element(
        timeline.moments, {}, [](const Moment& moment) { return moment.level.alive_bytes; });
    return static_cast<std::size_t>(peak - timeline.moments.begin());
}

std::string card(const ChartData& chart, const Timeline& timeline, Sizes sizes) {
    std::uint64_t max = 0;
    for (const Values& top : tops_of(chart)) max = std::max(max, *std::ranges::max_element(top));
    const std::uint64_t tick = tick_for(max);
    const std::uint64_t length = timeline.moments.back().time_ns - timeline.moments.front().time_ns;
    return fmt::format(
        "<section class=\"card full\" id=\"{}\"><h2>{}</h2>{}<div class=\"chart\">{}{}{}</div>{}"
        "</section>\n",
        chart.id, escape_html(chart.title),
        chart.note.empty() ? "" : "<p class=\"note\">" + chart.note + "</p>",
        labels_up(tick, sizes), drawing(chart, x_of(timeline), tick), labels_along(length),
        legend(chart, index_of_peak(timeline), sizes));
}

}  // namespace

std::string charts_html(const Timeline& timeline, Sizes sizes) {
    const Moment& peak = timeline.moments[index_of_peak(timeline)];
    std::string html = fmt::format(
        "<div class=\"card full moment\"><label for=\"moment\">Moment</label>"
        "<input id=\"moment\" type=\"range\" min=\"0\" max=\"{}\" value=\"{}\">"
        "<output id=\"moment-text\" for=\"moment\">{}, {}</output></div>\n",
        timeline.moments.size() - 1, index_of_peak(timeline),
        format_ns(peak.time_ns - timeline.moments.front().time_ns),
        format_size(peak.level.alive_bytes, sizes));
    for (const ChartData& chart : charts_of(timeline)) html += card(chart, timeline, sizes);
    return html;
}

std::string charts_json(const Timeline& timeline, Sizes sizes) {
    nlohmann::ordered_json json{{"width", width},
                                {"height", height},
                                {"plainBytes", sizes == Sizes::bytes},
                                {"x", x_of(timeline)}};
    for (const Moment& moment : timeline.moments) {
        json["times"].push_back(moment.time_ns - timeline.moments.front().time_ns);
        json["alive"].push_back(moment.level.alive_bytes);
    }
    for (const ChartData& chart : charts_of(timeline)) {
        json["charts"].push_back({{"id", chart.id}, {"series", chart.series}});
    }
    // The data contains no names, so nothing needs escaping.
    return json.dump();
}

}  // namespace tensorpool::command::inspect
