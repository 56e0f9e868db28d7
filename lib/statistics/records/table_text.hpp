#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "statistics/records/record_table.hpp"

/// The text of a table, which the segment carries: one line for the table, then one for each field,
/// rule, derivation, metric and column. Its values are separated by tabs.
namespace tensorpool::statistics {

/// Calls `item` with each value of one line, in order. A writer and a reader use the same
/// functions.
template <class Line>
void describe(Line& line, auto& table) requires requires {
    table.columns;
}
{
    line(table.name, table.of, table.label, table.title, table.id_word, table.name_word,
         table.version, table.choice.name, table.choice.word, table.choice.values, table.text.name,
         table.text.word, table.text.bytes, table.apart, table.parent, table.shown_if,
         table.ends_with, table.ends_with_kind, table.stays, table.shows_other, table.parts,
         table.parts_key, table.parts_from, table.parts_into, table.parts_bytes);
}
template <class Line>
void describe(Line& line, auto& field) requires requires {
    field.is_first;
}
{
    line(field.name, field.unit, field.kind, field.sentence, field.prometheus, field.word,
         field.pytorch, field.is_first, field.words, field.bits, field.use);
}
template <class Line>
void describe(Line& line, auto& rule) requires requires {
    rule.when;
}
{ line(rule.op, rule.to, rule.from, rule.when); }
template <class Line>
void describe(Line& line, auto& family) requires requires {
    family.scale;
}
{
    line(family.name, family.kind, family.sentence, family.label, family.scale, family.values);
    for (auto& part : family.parts) line(part);
}
template <class Line>
void describe(Line& line, auto& column) requires requires {
    column.show;
}
{
    line(column.title, column.show, column.value, column.of, column.of_kind, column.about,
         column.width);
}

/// What a line is about: its first letter.
enum class LineOf : char {
    table = 't',
    field = 'f',
    rule = 'r',
    derivation = 'd',
    family = 'm',
    column = 'c',
};

/// Writes a table's text to memory, or only counts its bytes. It allocates nothing.
class TableWriter {
public:
    /// nullptr: counts.
    explicit TableWriter(char* to) noexcept : to_(to) {}

    std::size_t write(const RecordTable& table) noexcept {
        line(LineOf::table, table);
        for (const Field& field : table.fields) line(LineOf::field, field);
        for (const Rule& rule : table.rules) line(LineOf::rule, rule);
        for (const Rule& rule : table.derivations) line(LineOf::derivation, rule);
        for (const Family& family : table.families) line(LineOf::family, family);
        for (const Column& column : table.columns) line(LineOf::column, column);
        return bytes_;
    }
    template <class... Values>
    void operator()(const Values&... values) noexcept {
        (value(values), ...);
    }

private:
    template <class Item>
    void line(LineOf of, const Item& item) noexcept {
        add({reinterpret_cast<const char*>(&of), 1});
        describe(*this, item);
        add("\n");
    }
    void add(std::string_view text) noexcept {
        if (to_ != nullptr) text.copy(to_ + bytes_, text.size());
        bytes_ += text.size();
    }
    void value(std::string_view text) noexcept {
        add("\t");
        add(text);
    }
    template <class Number>
    requires(!std::is_convertible_v<Number, std::string_view>) void value(Number number) noexcept {
        char text[24];
        const auto end = std::to_chars(text, text + sizeof text, static_cast<unsigned>(number)).ptr;
        value(std::string_view(text, static_cast<std::size_t>(end - text)));
    }

    char* to_;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::statistics
