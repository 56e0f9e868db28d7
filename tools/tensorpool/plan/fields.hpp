#pragma once

/// @file
/// What files of buffers tell of each, whatever their format.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/settings.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

enum class Field : std::uint8_t { id, lower, upper, size, alignment, offset };
inline constexpr std::array field_names = {"id", "lower", "upper", "size", "alignment", "offset"};
inline constexpr const char* all_field_names = "id, lower, upper, size, alignment and offset";
constexpr const char* to_string(Field field) noexcept {
    return field_names[static_cast<std::size_t>(field)];
}
/// None for a name that is no field's.
std::optional<Field> field_of(std::string_view name) noexcept;

/// A file that does not hold buffers as it should. Says which file, where in it, what was found
/// there and what was expected.
class FileError : public CommandError {
public:
    FileError(const std::string& file, const std::string& place, const std::string& what);
};

/// What is wrong with a field; who reads the file knows where that stands.
struct FieldProblem {
    Field field;
    std::string what;  ///< "found …, expected …"
};

/// A buffer as it comes together, field by field.
class BufferFields {
public:
    /// `text` as the file has it. Throws FieldProblem.
    void set(Field field, std::string_view text);
    bool has(Field field) const noexcept { return (given_ & bit(field)) != 0; }
    /// Adds it as the next one, and begins a new one. Throws FieldProblem for a field that is
    /// missing, or that does not go with the others.
    void move_to(Buffers& buffers);

private:
    static constexpr unsigned bit(Field field) noexcept {
        return 1U << static_cast<unsigned>(field);
    }
    void check(const Buffers& buffers) const;

    unsigned given_ = 0;
    std::string id_;
    TensorLifetime life_;
    std::uint64_t offset_ = 0;
};

/// "found \"text\"", cut where it is long and fit for a terminal.
std::string found(std::string_view text);

/// Sizes and offsets are at most this; so no sum of two wraps.
inline constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 62) - 1;
/// A whole number from 0 to `max_bytes`.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

}  // namespace tensorpool::command::planning
