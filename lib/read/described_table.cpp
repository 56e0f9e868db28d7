#include "read/described_table.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::read {
namespace {

using namespace statistics;

/// A table with a copy of the lists that it refers to.
struct DescribedTable {
    RecordTable table = {};
    std::vector<std::shared_ptr<void>> lists;
};

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
                   return one.show <= Column::highest && is_field(one.value, true) &&
                          is_field(one.of, true);
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

std::shared_ptr<const RecordTable> read_table(std::string_view bytes, std::size_t record_bytes) {
    const auto described = std::make_shared<DescribedTable>();
    RecordTable& table = described->table;
    if (bytes.size() < sizeof table) return nullptr;
    std::memcpy(static_cast<void*>(&table), bytes.data(), sizeof table);
    bytes.remove_prefix(sizeof table);
    bool is_whole = true;
    for_each_list(table, [&]<class Item>(std::span<const Item>& list) {
        const std::size_t count = list.size();
        is_whole = is_whole && count <= bytes.size() / sizeof(Item);
        if (!is_whole) return;
        const auto items = std::make_shared<std::vector<Item>>(count);
        described->lists.push_back(items);
        if (count != 0) std::memcpy(items->data(), bytes.data(), count * sizeof(Item));
        bytes.remove_prefix(count * sizeof(Item));
        list = *items;
    });
    if (!is_whole || !Bounds(table, record_bytes).hold()) return nullptr;
    return {described, &table};
}

}  // namespace tensorpool::read
