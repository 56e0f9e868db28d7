#include <fmt/format.h>

#include "common/html.hpp"
#include "inspect/report/charts.hpp"
#include "inspect/report/report_assets.hpp"
#include "inspect/report/reports.hpp"
#include "inspect/report/sections.hpp"

namespace tensorpool::command::inspect {
namespace {

// The policy blocks everything but the page's own style and script, in case a name in the trace
// injects HTML.
std::string policy() {
    return fmt::format(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; "
        "form-action 'none'",
        base64_of_hex(report_style().sha256), base64_of_hex(report_script().sha256));
}

std::string head(const std::string& title) {
    return fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n"
        "<meta name=\"referrer\" content=\"no-referrer\">\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n",
        policy(), title, report_style().text);
}

std::string tiles(const std::vector<Fact>& facts) {
    std::string html = "<dl class=\"facts\">\n";
    for (const Fact& fact : facts) {
        html += fmt::format(
            "<div class=\"tile\"><dt>{}</dt><dd class=\"value\">{}</dd><dd><small "
            "class=\"name\">{}</small></dd></div>\n",
            escape_html(fact.name), escape_html(fact.value), escape_html(fact.note));
    }
    return html + "</dl>\n";
}

std::string list_of(const std::vector<std::string>& lines, const char* tag) {
    std::string html = fmt::format("<{}>", tag);
    for (const std::string& line : lines) {
        html += fmt::format("<li class=\"name\">{}</li>", escape_html(line));
    }
    return html + fmt::format("</{}>", tag);
}

std::string doubts(const std::vector<std::string>& doubts) {
    if (doubts.empty()) return "";
    return "<section class=\"card full doubts\"><h2>Notes</h2>" + list_of(doubts, "ul") +
           "</section>\n";
}

const char* class_of(const Column& column) {
    return column.side == Side::right ? "number" : "name";
}

std::string cell(const Section& section, std::size_t row, std::size_t column) {
    std::string text = escape_html(section.table.rows[row][column].text);
    const bool has_details =
        column == 0 && row < section.details.size() && section.details[row].size() > 1;
    if (has_details) {
        text = fmt::format("<details><summary>{}</summary>{}</details>", text,
                           list_of(section.details[row], "ol"));
    }
    return fmt::format("<td class=\"{}\">{}</td>", class_of(section.table.columns[column]), text);
}

std::string table(const Section& section) {
    std::string html = "<div class=\"scroll\"><table>\n<thead><tr>";
    for (const Column& column : section.table.columns) {
        html += fmt::format("<th scope=\"col\" class=\"{}\">{}</th>", class_of(column),
                            escape_html(column.title));
    }
    html += "</tr></thead>\n<tbody>\n";
    for (std::size_t row = 0; row < section.table.rows.size(); ++row) {
        html += "<tr>";
        for (std::size_t column = 0; column < section.table.columns.size(); ++column) {
            html += cell(section, row, column);
        }
        html += "</tr>\n";
    }
    return html + "</tbody>\n</table></div>";
}

std::string card(const Section& section) {
    const bool is_wide = section.table.columns.size() > 5 || !section.details.empty();
    std::string html = fmt::format("<section class=\"card{}\" id=\"{}\"><h2>{}</h2>",
                                   is_wide ? " full" : "", section.id, escape_html(section.title));
    if (!section.note.empty()) {
        html += fmt::format("<p class=\"note\">{}</p>", escape_html(section.note));
    }
    return html + table(section) + "</section>\n";
}

}  // namespace

std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top) {
    const std::string name = escape_html(path.substr(path.rfind('/') + 1));
    std::string html = head(name + " - tensorpool inspect");
    html += fmt::format(
        "<body>\n<a class=\"skip\" href=\"#report\">Skip to the report</a>\n"
        "<header><h1 class=\"name\">{}</h1><p>tensorpool inspect</p>"
        "<button id=\"theme\" type=\"button\" title=\"change the colours\" hidden>dark</button>"
        "</header>\n<main id=\"report\" tabindex=\"-1\">\n",
        name);
    html += tiles(facts_of(analysis, sizes)) + doubts(doubts_of(analysis));
    html += charts_html(analysis.timeline, sizes);
    for (const Section& section : sections_of(analysis, sizes, top)) html += card(section);
    html +=
        "</main>\n<footer>Made by tensorpool inspect. This page uses no network."
        "</footer>\n<script id=\"timeline-data\" type=\"application/json\">";
    html += charts_json(analysis.timeline, sizes);
    html += fmt::format("</script>\n<script>{}</script>\n</body>\n</html>\n", report_script().text);
    return html;
}

}  // namespace tensorpool::command::inspect
