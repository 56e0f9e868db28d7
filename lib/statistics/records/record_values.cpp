#include "statistics/records/record_values.hpp"

#include "platform/platform.hpp"

namespace tensorpool::statistics {
namespace {

std::uint64_t result_of(Rule::Op op, std::uint64_t to, std::uint64_t from) noexcept {
    switch (op) {
        case Rule::plus:
            return to + from;
        case Rule::minus:
            return above(to, from);
        case Rule::minus_modulo:
            return to - from;
        case Rule::at_most:
            return std::min(to, from);
        case Rule::at_most_limit:
            return from == 0 ? to : std::min(to, from);
        case Rule::at_least:
            return std::max(to, from);
        case Rule::copy:
            return from;
        case Rule::or_else:
            return to == 0 ? from : to;
        case Rule::divide:
            return to / std::max<std::uint64_t>(from, 1);
        case Rule::age:
            return to == 0 ? 0 : above(platform::monotonic_clock_ns(), to);
    }
    return to;
}

/// Acquire pairs with the writers' `add_release`. Relaxed is enough for the others, which are
/// independent of each other.
std::uint64_t sum_at(const detail::Counter* first, const Field& field) noexcept {
    const auto order = field.is_first ? std::memory_order_acquire : std::memory_order_relaxed;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != field.words; ++i) sum += first[i].load(order);
    return field.bits == 64 ? sum : sum & ((std::uint64_t{1} << field.bits) - 1);
}

bool is_read(const Field& field, Reading reading) noexcept {
    return field.word != no_word && field.is_first == (reading == Reading::first);
}

bool is_of_parts(const RecordTable& table, const Field& field) noexcept {
    return field.word >= table.parts_into &&
           field.word - table.parts_into + sizeof(detail::Counter) * field.words <=
               table.parts_bytes;
}

}  // namespace

void apply_rules(std::span<const Rule> rules, std::span<std::uint64_t> values,
                 std::uint8_t applicable) noexcept {
    for (const Rule& rule : rules) {
        if ((rule.when & applicable) == 0) continue;
        values[rule.to] = result_of(rule.op, values[rule.to], values[rule.from]);
    }
}

void add_words(std::span<const Field> fields, Reading reading, const detail::Counter* record,
               std::uint64_t* to) noexcept {
    for (const Field& field : fields) {
        if (is_read(field, reading)) *to += sum_at(record + field.word / sizeof *record, field);
        ++to;
    }
}

void RecordValues::add(Reading reading, const detail::Counter* record) noexcept {
    add_words(table_.fields, reading, record, values_);
}

void RecordValues::add_own(Reading reading, const detail::Counter* record) noexcept {
    for (std::size_t i = 0; i != table_.fields.size(); ++i) {
        const Field& field = table_.fields[i];
        if (!is_of_parts(table_, field)) add_words({&field, 1}, reading, record, values_ + i);
    }
}

void RecordValues::add_part(Reading reading, const detail::Counter* part) noexcept {
    for (std::size_t i = 0; i != table_.fields.size(); ++i) {
        const Field& field = table_.fields[i];
        if (!is_read(field, reading) || !is_of_parts(table_, field)) continue;
        const std::size_t at = field.word - table_.parts_into + std::size_t{table_.parts_from};
        values_[i] += sum_at(part + at / sizeof(detail::Counter), field);
    }
}

void RecordValues::finish(const detail::Counter* record, bool is_other) noexcept {
    const auto applicable =
        is_other ? Rule::of_other : static_cast<std::uint8_t>(1U << choice_of(table_, record));
    apply_rules(table_.rules, values_, applicable);
    apply_rules(table_.derivations, values_);
}

std::uint64_t choice_of(const RecordTable& table, const detail::Counter* record) noexcept {
    if (table.choice.word == no_word) return 0;
    const std::uint64_t last = count_of_values(table.choice.values) - 1;
    const std::size_t at = table.choice.word / sizeof(detail::Counter);
    return std::min(record[at].load(std::memory_order_relaxed), last);
}

RecordValues values_of(const RecordTable& table, const detail::Counter* record,
                       bool is_other) noexcept {
    RecordValues values(table);
    values.add(Reading::first, record);
    values.add(Reading::second, record);
    values.finish(record, is_other);
    return values;
}

}  // namespace tensorpool::statistics
