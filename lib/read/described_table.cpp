#include "read/described_table.hpp"

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "statistics/records/table_text.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::read {
namespace {

using namespace statistics;

/// Reads the values of one line. Values that are missing or no numbers remain as they are.
class LineReader {
public:
    explicit LineReader(std::string_view line) noexcept : rest_(line) {}

    template <class... Values>
    void operator()(Values&... values) noexcept {
        (read(values), ...);
    }

private:
    std::string_view next() noexcept {
        if (!rest_.empty()) rest_.remove_prefix(1);  // a tab
        const std::string_view value = rest_.substr(0, rest_.find('\t'));
        rest_.remove_prefix(value.size());
        return value;
    }
    void read(std::string_view& value) noexcept { value = next(); }
    template <class Number>
    void read(Number& value) noexcept {
        const std::string_view text = next();
        unsigned number = 0;
        std::from_chars(text.data(), text.data() + text.size(), number);
        if constexpr (!std::is_enum_v<Number>) {
            value = static_cast<Number>(number);
        } else if (number <= static_cast<unsigned>(last_of(value))) {
            value = static_cast<Number>(number);
        }
    }
    static MetricKind last_of(MetricKind) noexcept { return MetricKind::peak; }
    static Use last_of(Use) noexcept { return Use::hidden; }
    static Rule::Op last_of(Rule::Op) noexcept { return Rule::age; }
    static Family::Scale last_of(Family::Scale) noexcept { return Family::seconds; }
    static Column::Show last_of(Column::Show) noexcept { return Column::highest; }

    std::string_view rest_;
};

template <class Item>
void add_to(std::vector<Item>& items, LineReader& line) {
    describe(line, items.emplace_back());
}

void read_line(DescribedTable& to, std::string_view text) {
    LineReader line(text.substr(1));
    switch (static_cast<LineOf>(text.front())) {
        case LineOf::table:
            return describe(line, to.table);
        case LineOf::field:
            return add_to(to.fields, line);
        case LineOf::rule:
            return add_to(to.rules, line);
        case LineOf::derivation:
            return add_to(to.derivations, line);
        case LineOf::family:
            return add_to(to.families, line);
        case LineOf::column:
            return add_to(to.columns, line);
    }
}

/// Checks every offset and every index.
class Bounds {
public:
    Bounds(const RecordTable& table, std::size_t record_bytes) noexcept
        : table_(table), bytes_(record_bytes) {}

    bool hold() const noexcept {
        return !table_.name.empty() && !table_.fields.empty() &&
               table_.fields.size() <= max_fields && hold_for_fields() && hold_for_words() &&
               std::ranges::all_of(table_.rules, [&](const Rule& rule) { return holds(rule); }) &&
               std::ranges::all_of(table_.derivations,
                                   [&](const Rule& rule) { return holds(rule); }) &&
               std::ranges::all_of(table_.families,
                                   [&](const Family& one) {
                                       return count_of_values(one.values) <= Family::max_parts &&
                                              std::ranges::all_of(one.parts, [&](auto part) {
                                                  return is_field(part, false);
                                              });
                                   }) &&
               std::ranges::all_of(table_.columns, [&](const Column& one) {
                   return is_field(one.value, true) && is_field(one.of, true);
               });
    }

private:
    bool is_field(std::size_t index, bool or_none) const noexcept {
        return index < table_.fields.size() || (or_none && index == no_field);
    }
    bool holds(const Rule& rule) const noexcept {
        return is_field(rule.to, false) && is_field(rule.from, false);
    }
    bool lies_inside(std::size_t word, std::size_t bytes) const noexcept {
        return word == no_word || (word % 8 == 0 && word + bytes <= bytes_);
    }
    bool hold_for_fields() const noexcept {
        return std::ranges::all_of(table_.fields,
                                   [&](const Field& field) {
                                       return field.bits != 0 && field.bits <= 64 &&
                                              lies_inside(field.word, field.words * 8U);
                                   }) &&
               std::ranges::is_sorted(table_.fields, {}, &Field::use);
    }
    bool hold_for_words() const noexcept {
        const RecordTable& t = table_;
        return t.id_word != no_word && lies_inside(t.id_word, 8) &&
               lies_inside(t.name_word, Name::bytes) && lies_inside(t.choice.word, 8) &&
               (t.choice.word == no_word || count_of_values(t.choice.values) != 0) &&
               t.text.bytes <= max_text_bytes && t.text.bytes % 8 == 0 &&
               lies_inside(t.text.word, t.text.bytes) && is_field(t.parent, true) &&
               is_field(t.shown_if, true) && is_field(t.ends_with, true) &&
               t.parts_into + std::size_t{t.parts_bytes} <= bytes_ && t.parts_into % 8 == 0 &&
               t.parts_from % 8 == 0 && t.parts_key % 8 == (t.parts.empty() ? t.parts_key % 8 : 0);
    }

    static constexpr std::size_t max_text_bytes = 64;
    const RecordTable& table_;
    std::size_t bytes_;
};

}  // namespace

std::shared_ptr<const RecordTable> read_table(std::string_view text, std::size_t record_bytes) {
    const auto described = std::make_shared<DescribedTable>();
    described->text = text;
    for (std::string_view rest = described->text; !rest.empty();) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (!line.empty()) read_line(*described, line);
    }
    RecordTable& table = described->table;
    table.fields = described->fields;
    table.rules = described->rules;
    table.derivations = described->derivations;
    table.families = described->families;
    table.columns = described->columns;
    if (!Bounds(table, record_bytes).hold()) return nullptr;
    return {described, &table};
}

}  // namespace tensorpool::read
