#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

struct Cell {
    std::string text;        ///< without quotes and surrounding spaces
    std::size_t line = 0;    ///< the line where it begins, from 1
    std::size_t column = 0;  ///< the byte of the line where it begins, from 1
};

/// Reads comma-separated values (RFC 4180) row by row.
class CsvReader {
public:
    CsvReader(std::string_view text, const std::string& name) : text_(text), name_(name) {
        constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
        if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
    }

    Buffers read() {
        read_header();
        while (next_row()) read_buffer();
        return std::move(buffers_);
    }

private:
    [[noreturn]] void fail(const Cell& at, std::string_view field, const std::string& what) const {
        const std::string of_field = field.empty() ? "" : fmt::format(" ({})", field);
        throw FileError(name_, fmt::format("line {}, column {}{}", at.line, at.column, of_field),
                        what);
    }

    void read_header() {
        if (!next_row()) {
            fail({{}, 1, 1}, "", "found nothing, expected a header line with column names");
        }
        for (const Cell& cell : row_) {
            const std::optional<Field> field = field_of(cell.text);
            if (!field) {
                fail(cell, "",
                     fmt::format("{} in the header line, expected some of {}", found(cell.text),
                                 all_field_names));
            }
            if (column_of(*field) < columns_.size()) {
                fail(cell, cell.text, "found it twice, expected it once");
            }
            columns_.push_back(*field);
        }
        for (const Field needed : {Field::lower, Field::upper, Field::size}) {
            if (column_of(needed) < columns_.size()) continue;
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
            fail(row_[column_of(problem.field)], to_string(problem.field), problem.what);
        }
    }

    /// Returns the number of columns if there is none for this field.
    std::size_t column_of(Field field) const {
        return static_cast<std::size_t>(std::ranges::find(columns_, field) - columns_.begin());
    }

    /// Reads the next row that is not blank. Returns false at the end of the text.
    bool next_row() {
        row_.clear();
        skip_spaces();
        for (; at_line_end(); skip_spaces()) {
            if (at_end()) return false;
            at_ += text_[at_] == '\r' ? 2 : 1;
            begin_line(at_);
        }
        for (;; ++at_) {  // the comma
            skip_spaces();
            row_.push_back({{}, line_, column()});
            row_.back().text = !at_end() && text_[at_] == '"' ? quoted() : plain();
            if (at_line_end()) return true;
        }
    }

    std::string plain() {
        const std::size_t begin = at_;
        while (!at_line_end() && text_[at_] != ',') ++at_;
        std::string text(text_.substr(begin, at_ - begin));
        return text.erase(text.find_last_not_of(" \t") + 1);
    }

    std::string quoted() {
        std::string text;
        for (++at_; !at_end(); ++at_) {
            if (text_[at_] == '"' && text_.substr(at_, 2) != "\"\"") {
                ++at_;
                skip_spaces();
                if (at_line_end() || text_[at_] == ',') return text;
                fail({{}, line_, column()}, "",
                     "found text after a closing quote, expected a comma");
            }
            if (text_[at_] == '"') ++at_;
            text += text_[at_];
            if (text_[at_] == '\n') begin_line(at_ + 1);
        }
        fail(row_.back(), "", "found an opening quote only, expected a closing quote");
    }

    bool at_end() const noexcept { return at_ == text_.size(); }
    bool at_line_end() const noexcept {
        return at_end() || text_[at_] == '\n' || text_.substr(at_, 2) == "\r\n";
    }
    void skip_spaces() {
        while (!at_end() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
    }
    void begin_line(std::size_t at) {
        ++line_;
        line_begin_ = at;
    }
    std::size_t column() const noexcept { return at_ - line_begin_ + 1; }

    std::string_view text_;
    const std::string& name_;
    std::size_t at_ = 0;
    std::size_t line_ = 1;
    std::size_t line_begin_ = 0;
    std::vector<Cell> row_;
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

using Json = nlohmann::json;

/// Handles each value when the parser has read it, so that a million buffers are never in memory as
/// a tree.
class JsonReader {
public:
    explicit JsonReader(const std::string& name) : name_(name) {}

    Buffers read(std::string_view text) try {
        [[maybe_unused]] const Json nothing =
            Json::parse(text, [this](int depth, Event event, const Json& parsed) {
                return take(depth, event, parsed);
            });
        if (list_depth_ == 0) {
            fail("the whole file",
                 "found no array of buffers, expected one, or an object that has one as "
                 "\"buffers\"");
        }
        return std::move(buffers_);
    } catch (const Json::exception& error) {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
        const std::string what = printable(error.what());
        const std::size_t at = what.find("at line");
        // The text ends with the last token, which may be a string of megabytes.
        constexpr std::size_t max_length = 200;
        fail("not JSON", what.substr(at == std::string::npos ? 0 : at + 3, max_length));
    }

private:
    using Event = Json::parse_event_t;

    /// Returns whether the parser keeps it: it does so with containers until they end.
    bool take(int depth, Event event, const Json& parsed) {
        const bool is_of_list = in_list_ && depth == list_depth_;
        switch (event) {
            case Event::key:
                key_ = parsed;
                return true;
            case Event::object_start:
            case Event::array_start:
                begin(depth, event == Event::array_start);
                return true;
            case Event::value:
                if (is_of_list) refuse(text_of(parsed));
                if (in_list_ && depth == list_depth_ + 1) set_field(parsed);
                if (!in_list_ && depth == 1 && key_ == "peak_bytes") set_peak(parsed);
                return false;
            case Event::object_end:
                if (is_of_list) guarded([this] { fields_.move_to(buffers_); });
                return false;
            case Event::array_end:
                if (depth + 1 == list_depth_) in_list_ = false;
                return false;
        }
        return false;
    }

    void begin(int depth, bool is_array) {
        constexpr int max_depth = 64;  // valid files have few levels
        if (depth >= max_depth) fail("the whole file", "found more than 64 levels of nesting");
        if (in_list_ && depth == list_depth_ && is_array) refuse("an array");
        const bool is_list = depth == 0 || (depth == 1 && !in_list_ && key_ == "buffers");
        if (!is_array || !is_list) return;
        if (list_depth_ != 0) fail("buffers", "found it twice, expected it once");
        list_depth_ = depth + 1;
        in_list_ = true;
    }

    static std::string text_of(const Json& value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
    }
    [[noreturn]] void refuse(std::string_view text) const {
        fail(position(), found(text) + ", expected an object for each buffer");
    }
    void set_peak(const Json& value) {
        buffers_.peak_bytes = value.is_number() ? parse_bytes(text_of(value)) : std::nullopt;
        if (buffers_.peak_bytes) return;
        fail("peak_bytes",
             found(text_of(value)) + ", expected bytes: a whole number from 0 to 2^62 - 1");
    }
    void set_field(const Json& value) {
        const std::optional<Field> field = field_of(key_);
        if (!field) return;
        const bool is_id = *field == Field::id;
        guarded([&] {
            if (!value.is_number() && !(is_id && value.is_string())) {
                throw FieldProblem{*field,
                                   fmt::format("{}, expected a number{}", found(text_of(value)),
                                               is_id ? " or a string" : "")};
            }
            fields_.set(*field, text_of(value));
        });
    }

    template <class Part>
    void guarded(Part&& part) {
        try {
            part();
        } catch (const FieldProblem& problem) {
            fail(fmt::format("{}.{}", position(), to_string(problem.field)), problem.what);
        }
    }
    std::string position() const { return fmt::format("buffers[{}]", buffers_.lifetimes.size()); }
    [[noreturn]] void fail(const std::string& position, const std::string& what) const {
        throw FileError(name_, position, what);
    }

    const std::string& name_;
    Buffers buffers_;
    BufferFields fields_;
    std::string key_;     // the last one
    int list_depth_ = 0;  // of the elements of the list of buffers; 0: there was none
    bool in_list_ = false;
};

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

Buffers read_json(std::string_view text, const std::string& name) {
    return JsonReader(name).read(text);
}

void write_json(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file) {
    file.write(
        fmt::format("{{\"peak_bytes\": {}, \"lower_bound_bytes\": {}, \"method\": \"{}\", "
                    "\"optimal\": {},\n \"buffers\": [",
                    plan.peak_bytes, plan.lower_bound_bytes, to_string(plan.method), plan.optimal));
    for (std::size_t i = 0; i < buffers.lifetimes.size(); ++i) {
        const TensorLifetime& lifetime = buffers.lifetimes[i];
        const nlohmann::ordered_json buffer = {{"id", buffers.ids[i]},
                                               {"lower", lifetime.begin},
                                               {"upper", lifetime.end},
                                               {"size", lifetime.bytes},
                                               {"alignment", lifetime.alignment},
                                               {"offset", plan.offsets[i]}};
        file.write((i == 0 ? "\n  " : ",\n  ") + json_line(buffer));
    }
    file.write("\n ]}\n");
}

}  // namespace tensorpool::command::planning
