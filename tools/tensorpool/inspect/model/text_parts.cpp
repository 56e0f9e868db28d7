#include "inspect/model/text_parts.hpp"

#include "common/printable.hpp"

namespace tensorpool::command::model {
namespace {

// Wider than any terminal, so that piped output does not lose a column.
constexpr std::size_t width = 400;
constexpr std::size_t prose_width = 79;

}  // namespace

std::string fact_line(const std::string& name, const std::string& parameter,
                      const std::string& note) {
    std::string line = fit(name, 15) + ' ' + fit(printable(parameter), 14, Side::right);
    if (!note.empty()) line += "  " + printable(note);
    return line + '\n';
}

std::string titled_table(const std::string& title, const Table& table) {
    std::string text = '\n' + title + "\n\n";
    for (const std::string& line : lay_out(table, width)) text += line + '\n';
    return text;
}

std::string paragraph(const std::string& text) {
    std::string lines;
    for (const std::string& line : wrap(printable(text), prose_width)) lines += line + '\n';
    return lines;
}

}  // namespace tensorpool::command::model
