
#include <fmt/format.h>

#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

std::string position_text(const CsvCell& cell, std::string_view field) {
    return fmt::format("line {}, column {}{}{}{}", cell.line, cell.column,
                       field.empty() ? "" : " (", field, field.empty() ? "" : ")");
}

class CsvReader {
public:
    CsvReader(std::string_view text, const std::string& name) : rows_(text), name_(name) {}

    Buffers read() try {
        read_header();
        while (rows_.next(row_)) read_buffer();
        return std::move(buffers_);
    } catch (const CsvProblem& problem) {
        fail({{}, problem.line, problem.column}, "", problem.what);
    }

private:
    [[noreturn]] void fail(const CsvCell& at, std::string_view field,
                           const std::string& what) const {
        throw FileError(name_, position_text(at, field), what);
    }

    void read_header() {
        if (!rows_.next(row_)) {
            fail({{}, 1, 1}, "", "found nothing, expected a header line with column names");
        }
        for (const CsvCell& cell : row_) {
            const std::optional<Field> field = field_of(cell.text);
            if (!field) {
                fail(cell, "",
                     fmt::format("{} in the header line, expected some of {}", found(cell.text),
                                 all_field_names));
            }
            for (const Field previous : columns_) {
                if (previous == *field) fail(cell, cell.text, "found it twice, expected it once");
            }
            columns_.push_back(*field);
        }
        check_columns();
    }

    void check_columns() const {
        for (const Field needed : {Field::lower, Field::upper, Field::size}) {
            if (std::find(columns_.begin(), columns_.end(), needed) != columns_.end()) continue;
            fail(row_.front(), "",
                 fmt::format("found no column {}, expected lower, upper and size",
                             to_string(needed)));
        }
    }

    void read_buffer() {
        if (row_.size() != columns_.size()) {
            fail(row_.back(), "",
                 fmt::format("found {} values, expected {}, one for each column", row_.size(),
                             columns_.size()));
        }
        try {
            for (std::size_t i = 0; i < row_.size(); ++i) fields_.set(columns_[i], row_[i].text);
            fields_.move_to(buffers_);
        } catch (const FieldProblem& problem) {
            fail(cell_of(problem.field), to_string(problem.field), problem.what);
        }
    }

    const CsvCell& cell_of(Field field) const {
        std::size_t column = 0;
        while (columns_[column] != field) ++column;
        return row_[column];
    }

    CsvRows rows_;
    const std::string& name_;
    std::vector<CsvCell> row_;
    std::vector<Field> columns_;
    BufferFields fields_;
    Buffers buffers_;
};

/// Returns the text, in quotes if a reader would split or trim it otherwise.
std::string csv_text(const std::string& text) {
    const bool plain = text.find_first_of(",\"\r\n") == std::string::npos && !text.empty() &&
                       text.find_first_of(" \t") != 0 &&
                       text.find_last_of(" \t") != text.size() - 1;
    if (plain) return text;
    std::string quoted = "\"";
    for (const char character : text)
        quoted += character == '"' ? "\"\"" : std::string(1, character);
    return quoted + '"';
}

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

Buffers read_csv(std::string_view text, const std::string& name) {
    return CsvReader(text, name).read();
}

void write_csv(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file) {
    file.write("id,lower,upper,size,alignment,offset\n");
    for (std::size_t i = 0; i < buffers.lifetimes.size(); ++i) {
        const TensorLifetime& lifetime = buffers.lifetimes[i];
        file.write(fmt::format("{},{},{},{},{},{}\n", csv_text(buffers.ids[i]), lifetime.begin,
                               lifetime.end, lifetime.bytes, lifetime.alignment, plan.offsets[i]));
    }
}

}  // namespace tensorpool::command::planning
