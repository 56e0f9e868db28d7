#include "plan/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <tuple>
#include <utility>

#include "common/printable.hpp"

namespace tensorpool::command::planning {
namespace {

/// Ends sort before beginnings of the same time, because intervals are half-open.
struct Change {
    std::int64_t time;
    bool begins;
    std::uint64_t bytes;
    friend bool operator<(const Change& a, const Change& b) {
        return std::tie(a.time, a.begins) < std::tie(b.time, b.begins);
    }
};

template <class Number>
std::optional<Number> parse(std::string_view text) noexcept {
    Number number = 0;
    const char* const end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc() || last != end) return std::nullopt;
    return number;
}

std::int64_t time_of(Field field, std::string_view text) {
    // Below the limits of the type, so that adding or subtracting one cannot overflow.
    constexpr std::int64_t max_time = std::int64_t{1} << 62;
    const auto time = parse<std::int64_t>(text);
    if (time && *time >= -max_time && *time <= max_time) return *time;
    throw FieldProblem{field, found(text) + ", expected a time: a whole number from -2^62 to 2^62"};
}

std::uint64_t bytes_of(Field field, std::string_view text) {
    if (const auto bytes = parse_bytes(text)) return *bytes;
    throw FieldProblem{field, found(text) + ", expected bytes: a whole number from 0 to 2^62 - 1"};
}

std::uint64_t alignment_of(std::string_view text) {
    const auto alignment = parse_bytes(text);
    if (alignment && std::has_single_bit(*alignment)) return *alignment;
    throw FieldProblem{Field::alignment,
                       found(text) + ", expected an alignment in bytes: a power of two"};
}

}  // namespace

std::uint64_t lower_bound_of(const std::vector<TensorLifetime>& lifetimes) {
    std::vector<Change> changes;
    changes.reserve(2 * lifetimes.size());
    for (const TensorLifetime& lifetime : lifetimes) {
        changes.push_back({lifetime.begin, true, lifetime.bytes});
        changes.push_back({lifetime.end, false, lifetime.bytes});
    }
    std::sort(changes.begin(), changes.end());
    std::uint64_t alive = 0;
    std::uint64_t max = 0;
    for (const Change& change : changes) {
        alive = change.begins ? alive + change.bytes : alive - change.bytes;
        max = std::max(max, alive);
    }
    return max;
}

std::uint64_t peak_of(const std::vector<TensorLifetime>& lifetimes,
                      const std::vector<std::uint64_t>& offsets) {
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        peak = std::max(peak, offsets[i] + lifetimes[i].bytes);
    }
    return peak;
}

FileError::FileError(const std::string& file, const std::string& position, const std::string& what)
    : CommandError(finding, fmt::format("{}: {}: {}", printable(file), position, what)) {}

std::optional<Field> field_of(std::string_view name) noexcept {
    const auto* const at = std::find(field_names.begin(), field_names.end(), name);
    if (at == field_names.end()) return std::nullopt;
    return static_cast<Field>(at - field_names.begin());
}

std::string found(std::string_view text) {
    constexpr std::size_t max_length = 40;
    if (text.empty()) return "found nothing";
    const bool cut = text.size() > max_length;
    return fmt::format("found \"{}{}\"", printable(text.substr(0, max_length)), cut ? "…" : "");
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
    const auto bytes = parse<std::uint64_t>(text);
    return bytes && *bytes <= max_bytes ? bytes : std::nullopt;
}

void BufferFields::set(Field field, std::string_view text) {
    if (has(field)) throw FieldProblem{field, found(text) + ", expected it once"};
    switch (field) {
        case Field::id:
            id_ = text;
            break;
        case Field::lower:
            lifetime_.begin = time_of(field, text);
            break;
        case Field::upper:
            lifetime_.end = time_of(field, text);
            break;
        case Field::size:
            lifetime_.bytes = bytes_of(field, text);
            break;
        case Field::alignment:
            lifetime_.alignment = alignment_of(text);
            break;
        case Field::offset:
            offset_ = bytes_of(field, text);
            break;
    }
    given_ |= bit(field);
}

void BufferFields::check(const Buffers& buffers) const {
    for (const Field needed : {Field::lower, Field::upper, Field::size}) {
        if (!has(needed)) throw FieldProblem{needed, "found nothing, expected it for each buffer"};
    }
    if (lifetime_.end <= lifetime_.begin) {
        throw FieldProblem{Field::upper, fmt::format("found {}, expected a time above lower, {}",
                                                     lifetime_.end, lifetime_.begin)};
    }
    const bool others_have = !buffers.offsets.empty();
    if (!buffers.lifetimes.empty() && has(Field::offset) != others_have) {
        throw FieldProblem{Field::offset, fmt::format("found {}, but the buffers before have {}; "
                                                      "expected all or none",
                                                      others_have ? "none" : "one",
                                                      others_have ? "one each" : "none")};
    }
}

void BufferFields::move_to(Buffers& buffers) {
    check(buffers);
    buffers.ids.push_back(has(Field::id) ? std::move(id_)
                                         : std::to_string(buffers.lifetimes.size()));
    buffers.lifetimes.push_back(lifetime_);
    if (has(Field::offset)) buffers.offsets.push_back(offset_);
    *this = {};
}

}  // namespace tensorpool::command::planning
