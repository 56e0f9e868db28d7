#include <fmt/format.h>

#include "plan/csv_rows.hpp"
#include "plan/fields.hpp"
#include "plan/formats.hpp"

namespace tensorpool::command::planning {
namespace {

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
