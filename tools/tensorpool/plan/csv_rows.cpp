#include "plan/csv_rows.hpp"

namespace tensorpool::command::planning {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

}  // namespace

CsvRows::CsvRows(std::string_view text) : text_(text) {
    if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
}

bool CsvRows::at_line_end() const noexcept {
    return at_end() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
}

/// Returns false at the end of the text.
bool CsvRows::skip_line_end() {
    if (at_end()) return false;
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
    line_begin_ = at_;
    return true;
}

void CsvRows::skip_spaces() {
    while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
}

CsvCell CsvRows::cell_here() const {
    return {{}, line_, at_ - line_begin_ + 1};
}

CsvCell CsvRows::plain() {
    CsvCell cell = cell_here();
    const std::size_t begin = at_;
    while (!at_line_end() && text_[at_] != ',') ++at_;
    cell.text = text_.substr(begin, at_ - begin);
    cell.text.erase(cell.text.find_last_not_of(" \t") + 1);
    return cell;
}

CsvCell CsvRows::quoted() {
    CsvCell cell = cell_here();
    for (++at_; !at_end(); ++at_) {
        if (text_[at_] == '"' && text_.substr(at_, 2) != "\"\"") {
            ++at_;
            skip_spaces();
            if (at_line_end() || text_[at_] == ',') return cell;
            throw CsvProblem{line_, at_ - line_begin_ + 1,
                             "found text after a closing quote, expected a comma"};
        }
        if (text_[at_] == '"') ++at_;
        if (text_[at_] == '\n') {
            ++line_;
            line_begin_ = at_ + 1;
        }
        cell.text += text_[at_];
    }
    throw CsvProblem{cell.line, cell.column,
                     "found an opening quote only, expected a closing quote"};
}

bool CsvRows::next(std::vector<CsvCell>& row) {
    row.clear();
    skip_spaces();
    while (at_line_end()) {
        if (!skip_line_end()) return false;
        skip_spaces();
    }
    for (;;) {
        skip_spaces();
        row.push_back(!at_end() && text_[at_] == '"' ? quoted() : plain());
        if (at_line_end()) return true;
        ++at_;  // the comma
    }
}

}  // namespace tensorpool::command::planning
