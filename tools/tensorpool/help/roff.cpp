#include "help/roff.hpp"

#include <fmt/format.h>

#include <sstream>

namespace tensorpool::command {
namespace {

/// Collects paragraphs, and inserts the roff requests that begin and end verbatim lines.
class Paragraphs {
public:
    void add(const std::string& line) {
        const bool literal = line.starts_with("  ");
        if (literal != literal_) text_ += literal ? ".PP\n.RS 2\n.nf\n" : ".fi\n.RE\n";
        literal_ = literal;
        if (line.empty()) {
            apart_ = true;
            return;
        }
        if (apart_ && !literal && !text_.empty()) text_ += ".PP\n";
        apart_ = false;
        text_ += roff(literal ? line.substr(2) : line) + '\n';
    }
    std::string end() {
        if (literal_) text_ += ".fi\n.RE\n";
        return std::move(text_);
    }

private:
    std::string text_;
    bool literal_ = false;
    bool apart_ = false;
};

}  // namespace

std::string roff(std::string_view text) {
    std::string safe;
    if (text.starts_with('.') || text.starts_with('\'')) safe = "\\&";
    for (const char c : text) {
        if (c == '\\') {
            safe += "\\e";
        } else if (c == '-') {
            safe += "\\-";
        } else if (c == '`' || c == '\'') {
            safe += c == '`' ? "\\(ga" : "\\(aq";
        } else {
            safe += c;
        }
    }
    return safe;
}

std::string page_head(std::string_view name, int section_number, std::string_view sentence) {
    std::string title;
    for (const char c : name)
        title += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return fmt::format(".TH {} {} \"\" \"tensorpool {}\" \"tensorpool\"\n.SH NAME\n{} \\- {}\n",
                       roff(title), section_number, TENSORPOOL_VERSION, roff(name), roff(sentence));
}

std::string section(std::string_view title) {
    return fmt::format(".SH {}\n", roff(title));
}

std::string item(std::string_view name, std::string_view description) {
    return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(description));
}

std::string paragraphs(std::string_view text) {
    Paragraphs made;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) made.add(line);
    return made.end();
}

}  // namespace tensorpool::command
