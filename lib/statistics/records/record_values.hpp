#pragma once

#include <algorithm>
#include <cstring>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Returns `a - b`, or 0 if `b` is larger.
constexpr std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
}

/// When a word is read: see Field::is_first.
enum class Reading : std::uint8_t { first, second };

/// The values of one record, as its table computes them. All words that are read first must be
/// added before all others.
class RecordValues {
public:
    explicit RecordValues(const RecordTable& table) noexcept : table_(table) {}

    void add(Reading reading, const detail::Counter* record) noexcept;
    /// Adds a record without the words into which parts are summed.
    void add_own(Reading reading, const detail::Counter* record) noexcept;
    /// Adds a record of the kind `parts`.
    void add_part(Reading reading, const detail::Counter* part) noexcept;
    /// Applies the rules. `record` has the choice.
    void finish(const detail::Counter* record, bool is_other) noexcept;

    std::span<const std::uint64_t> all() const noexcept { return {values_, table_.fields.size()}; }
    std::uint64_t operator[](std::size_t field) const noexcept { return values_[field]; }

private:
    const RecordTable& table_;
    std::uint64_t values_[max_fields] = {};
};

/// Adds the words of fields that are read now, in order, to the words at `to`.
void add_words(std::span<const Field> fields, Reading reading, const detail::Counter* record,
               std::uint64_t* to) noexcept;

/// Applies rules that need no record.
void apply_rules(std::span<const Rule> rules, std::span<std::uint64_t> values,
                 std::uint8_t applicable = UINT8_MAX) noexcept;

/// Returns the number of a record's choice, which is one of the table.
std::uint64_t choice_of(const RecordTable& table, const detail::Counter* record) noexcept;

/// Reads a record that is its own only part.
RecordValues values_of(const RecordTable& table, const detail::Counter* record,
                       bool is_other) noexcept;

/// The words of a public structure that the shown fields of its table fill, in order.
template <class Statistics>
auto* first_value(Statistics& statistics) noexcept {
    if constexpr (requires { statistics.id; }) {
        return &statistics.id;
    } else if constexpr (requires { statistics.calls; }) {
        return &statistics.calls;
    } else {
        return &statistics.device;
    }
}
template <class Statistics>
std::size_t value_count() noexcept {
    static_assert(std::is_standard_layout_v<Statistics>);
    const Statistics some{};
    const auto* const end = reinterpret_cast<const char*>(&some + 1);
    return static_cast<std::size_t>(end - reinterpret_cast<const char*>(first_value(some))) / 8;
}
template <class Statistics>
void fill(Statistics& statistics, std::span<const std::uint64_t> values) noexcept {
    std::memcpy(first_value(statistics), values.data(), value_count<Statistics>() * 8);
}

/// Sets the choice of a public structure, its `kind` or `state`, if it has one.
template <class Statistics>
void set_choice(Statistics& statistics, [[maybe_unused]] std::uint64_t choice) noexcept {
    if constexpr (requires { statistics.kind; }) {
        statistics.kind = static_cast<decltype(statistics.kind)>(choice);
    } else if constexpr (requires { statistics.state; }) {
        statistics.state = static_cast<decltype(statistics.state)>(choice);
    }
}

/// Returns a public structure with what a record says: its values, its choice, its texts.
template <class Record>
auto with_values(const Record& record, std::span<const std::uint64_t> values) noexcept {
    typename Record::Statistics statistics;
    fill(statistics, values);
    if constexpr (requires { record.name; }) load_name(record.name, statistics.name);
    set_choice(statistics,
               choice_of(*Record::layout.table, reinterpret_cast<const detail::Counter*>(&record)));
    if constexpr (requires { sizeof(statistics.device[0]); }) {
        load_text(record.device, statistics.device);
    }
    return statistics;
}

/// Returns the statistics of an object of this process, by its record.
template <class Record>
requires requires {
    typename Record::Statistics;
}
auto statistics_of(const Record& record) noexcept {
    const auto* const words = reinterpret_cast<const detail::Counter*>(&record);
    const bool is_other = record.id.load(std::memory_order_relaxed) == 0;
    return with_values(record, values_of(*Record::layout.table, words, is_other).all());
}

}  // namespace tensorpool::statistics
