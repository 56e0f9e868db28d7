#pragma once

#include <array>
#include <span>
#include <string_view>

#include <tensorpool/record_group.hpp>

/// How a kind of record is described: once, in the layer that owns it, as a constant. The segment
/// carries a copy, so that a reader shows kinds that it does not know. The description therefore
/// contains no pointers but those to its lists, and every value of its bytes is allowed.
namespace tensorpool::statistics {

inline constexpr std::uint16_t no_word = UINT16_MAX;
inline constexpr std::uint8_t no_field = UINT8_MAX;
inline constexpr std::size_t max_fields = 64;

/// A text of the description.
template <std::size_t bytes>
struct Text {
    char text[bytes] = {};

    constexpr Text() noexcept = default;
    template <std::size_t length>
    constexpr Text(const char (&from)[length]) noexcept {
        static_assert(length <= bytes);
        for (std::size_t i = 0; i != length; ++i) text[i] = from[i];
    }
    // With the sanitizer, gcc 12 does not compute `find` when it compiles.
    constexpr operator std::string_view() const noexcept {
        std::size_t length = 0;
        while (length != bytes && text[length] != '\0') ++length;
        return {text, length};
    }
    constexpr std::string_view view() const noexcept { return *this; }
    constexpr bool empty() const noexcept { return text[0] == '\0'; }
    friend constexpr bool operator==(const Text& one, std::string_view other) noexcept {
        return one.view() == other;
    }
};
using Word = Text<32>;
using LongWord = Text<64>;
using Sentence = Text<208>;

enum class MetricKind : std::uint8_t {
    gauge,  // rises and falls
    total,  // only rises
    peak,   // the highest value so far
};

/// What a field is for.
enum class Use : std::uint8_t {
    shown,    // a member in JSON, and of the public structure
    derived,  // computed from shown fields, for columns and divided metrics
    hidden,   // only read, for rules
};

/// One value of each record. Its words are added up when the record is read; then rules apply.
struct Field {
    Word name = "";
    Text<16> unit = "";  // "bytes", or what is counted, such as "calls"
    MetricKind kind = MetricKind::gauge;
    Text<136> sentence = "";
    LongWord prometheus = "";      // "" if Prometheus has no such metric, or a divided one
    std::uint16_t word = no_word;  // the offset of its first word in the record
    Text<40> pytorch = "";         // PyTorch's name of the metric, if it has one
    // 1: read before all others, of the record and its parts: a counter of frees, or of a part of
    // another counter. A part therefore never reads larger than the whole.
    std::uint8_t is_first = 0;
    std::uint8_t words = 1;  // that follow each other
    std::uint8_t bits = 64;  // of the sum that count
    Use use = Use::shown;
};

/// A field that only rules read.
constexpr Field hidden(const Word& name, std::uint16_t word = no_word,
                       bool is_first = false) noexcept {
    return {.name = name, .word = word, .is_first = is_first, .use = Use::hidden};
}

/// A step of the computation, in order: `to` becomes what the operation makes of it and `from`.
struct Rule {
    enum Op : std::uint8_t {
        plus,
        minus,         // not below 0
        minus_modulo,  // a signed difference
        at_most,
        at_most_limit,  // like at_most; 0 means no limit
        at_least,
        copy,
        or_else,  // `from` if `to` is 0
        divide,   // by `from`, or by 1 if that is 0
        age,      // of a time, at the time of reading; 0 stays 0
    };
    Op op = plus;
    std::uint8_t to = 0;
    std::uint8_t from = 0;
    // For which values of the table's choice it applies: one bit each. `other`, which sums up
    // records of all choices, has the last bit.
    std::uint8_t when = UINT8_MAX;

    static constexpr std::uint8_t of_other = 0x80;
    static constexpr std::uint8_t only(unsigned choice) noexcept {
        return static_cast<std::uint8_t>(1U << choice);
    }
    static constexpr std::uint8_t except(unsigned choice) noexcept {
        return static_cast<std::uint8_t>(~(1U << choice));
    }
};

/// A metric of Prometheus that several fields divide, or that is computed.
struct Family {
    static constexpr std::size_t max_parts = 6;
    enum Scale : std::uint8_t { number, limit, seconds };  // limit: 0 is infinite

    LongWord name = "";
    MetricKind kind = MetricKind::gauge;
    Sentence sentence = "";
    Word label = "";  // "" if there is one part, which has no label
    Scale scale = number;
    // Label values, separated by `|`; "" for those of the choice: 1 for that of the record.
    LongWord values = "";
    std::array<std::uint8_t, max_parts> parts = {};  // a field for each label value
};

/// A metric of Prometheus without a label.
constexpr Family single(const LongWord& name, MetricKind kind, const Sentence& sentence,
                        Family::Scale scale, std::uint8_t field) noexcept {
    return {name, kind, sentence, "", scale, "", {field}};
}

/// A metric of Prometheus that fields divide: one for each value of the label.
constexpr Family divided(const LongWord& name, MetricKind kind, const Sentence& sentence,
                         const Word& label, const LongWord& values,
                         const std::array<std::uint8_t, Family::max_parts>& parts) noexcept {
    return {name, kind, sentence, label, Family::number, values, parts};
}

/// A column of tables for people. A `reference` is the name of the record of the kind `of_kind`
/// with this number; a `part` is `value` of `of`.
struct Column {
    using enum RecordColumn::Show;

    Text<16> title = "";
    RecordColumn::Show show = size;
    std::uint8_t value = no_field;
    std::uint8_t of = no_field;
    Word of_kind = "";
    LongWord about = "";     // a sentence, if the fields do not say it
    std::uint8_t width = 0;  // the minimum on a screen; 0: that of what it shows
};

/// A word, or a text, that all records of a kind have.
struct Choice {
    Word name = "";  // of the member in JSON; "" if there is none
    std::uint16_t word = no_word;
    LongWord values = "";  // separated by `|`; any number beyond means the last
};
struct TextMember {
    Word name = "";
    std::uint16_t word = no_word;
    std::uint16_t bytes = 0;
};

/// The description of a kind of record.
struct RecordTable {
    Word name = "";       // of all records, as in JSON: "budgets"
    Word of = "";         // what one of them is: "budget"
    Word label = "";      // of the name in Prometheus
    Text<96> title = "";  // above tables
    std::uint16_t id_word = 0;
    std::uint16_t name_word = 8;  // no_word: they have no names
    std::uint32_t version = 0;    // of the JSON objects; 0 if they have none
    Choice choice = {};
    TextMember text = {};
    Word apart = "";                 // records with the last choice are another list of this name
    std::uint8_t parent = no_field;  // the field with the number of the record above
    // Records whose field is 0 are not shown. `ends_with` is a field with the number of a record of
    // `ends_with_kind`: they are shown until that has ended, and for ever with the choice `stays`.
    std::uint8_t shown_if = no_field;
    std::uint8_t ends_with = no_field;
    Word ends_with_kind = "";
    std::uint8_t stays = no_field;
    std::uint8_t shows_other = 1;  // 0: not
    // Records of another kind whose words from `parts_from` on are added to those from `parts_into`
    // on, if their word `parts_key` is the number of this one.
    Word parts = "";
    std::uint16_t parts_key = no_word;
    std::uint16_t parts_from = 0;
    std::uint16_t parts_into = 0;
    std::uint16_t parts_bytes = 0;
    // Two fields, if the kind has requests: those that were served without other layers, and all.
    std::uint8_t hits = no_field;
    std::uint8_t requests = no_field;

    std::span<const Field> fields;  // shown ones, derived ones, hidden ones
    std::span<const Rule> rules = {};
    std::span<const Rule> derivations = {};  // of derived fields
    std::span<const Family> families = {};
    std::span<const Column> columns = {};

    constexpr std::size_t count(Use use) const noexcept {
        std::size_t count = 0;
        for (const Field& field : fields) count += field.use == use ? 1 : 0;
        return count;
    }
    constexpr std::size_t shown() const noexcept { return count(Use::shown); }
    constexpr std::span<const Field> shown_fields() const noexcept { return fields.first(shown()); }
};

/// Calls `function` with each list of a table, in the order in which the segment carries them,
/// behind the table.
template <class Function>
constexpr void for_each_list(auto& table, Function function) {
    function(table.fields);
    function(table.rules);
    function(table.derivations);
    function(table.families);
    function(table.columns);
}

/// Returns the index of one of these fields. A constant expression of a name that does not occur
/// does not compile.
template <const auto& fields>
struct IndexOf {
    constexpr std::uint8_t operator()(std::string_view name) const {
        for (std::size_t i = 0; i != std::size(fields); ++i) {
            if (fields[i].name == name) return static_cast<std::uint8_t>(i);
        }
        throw "no such field";
    }
};

/// Calls `function` with each of the values that `|` separates.
template <class Function>
constexpr void for_each_value(std::string_view values, Function function) {
    while (!values.empty()) {
        const std::size_t end = values.find('|');
        function(values.substr(0, end));
        values.remove_prefix(end == std::string_view::npos ? values.size() : end + 1);
    }
}

/// Returns a value by its number; the last one for larger numbers.
constexpr std::string_view value_at(std::string_view values, std::uint64_t number) {
    std::string_view found = "";
    for_each_value(values, [&, at = std::uint64_t{0}](std::string_view value) mutable {
        if (at++ <= number) found = value;
    });
    return found;
}

constexpr std::size_t count_of_values(std::string_view values) {
    std::size_t count = 0;
    for_each_value(values, [&](std::string_view) { ++count; });
    return count;
}

}  // namespace tensorpool::statistics
