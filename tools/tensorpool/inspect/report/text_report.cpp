#include <fmt/format.h>

#include "common/printable.hpp"
#include "inspect/report/reports.hpp"
#include "inspect/report/sections.hpp"

namespace tensorpool::command::inspect {
namespace {

// Wider than any terminal, so that piped output does not lose a column.
constexpr std::size_t width = 400;
constexpr std::size_t prose_width = 79;

std::string paragraph(const std::string& text, const char* indent = "") {
    std::string lines;
    for (const std::string& line : wrap(printable(text), prose_width))
        lines += indent + line + '\n';
    return lines;
}

std::string table_text(Table table) {
    for (auto& row : table.rows) {
        for (Cell& cell : row) cell.text = printable(cell.text);
    }
    std::string text;
    for (const std::string& line : lay_out(table, width)) {
        text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
    }
    return text;
}

std::string fact_line(const Fact& fact) {
    std::string line = fit(fact.name, 15) + ' ' + fit(fact.value, 14, Side::right);
    if (!fact.note.empty()) line += "  " + printable(fact.note);
    return line + '\n';
}

}  // namespace

std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top) {
    std::string text = printable(path) + "\n\n";
    for (const Fact& fact : facts_of(analysis, sizes)) text += fact_line(fact);
    const std::vector<std::string> doubts = doubts_of(analysis);
    if (!doubts.empty()) text += '\n';
    for (const std::string& doubt : doubts) text += paragraph(doubt);
    for (const Section& section : sections_of(analysis, sizes, top)) {
        text += '\n' + section.title + '\n';
        if (!section.note.empty()) text += paragraph(section.note, "  ");
        text += '\n' + table_text(section.table);
    }
    return text;
}

}  // namespace tensorpool::command::inspect
