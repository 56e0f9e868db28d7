#pragma once

/// @file
/// The fields of a buffer in a file, independent of the file's format.

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
/// Returns the field of this name, or nullopt if there is none.
std::optional<Field> field_of(std::string_view name) noexcept;

/// An invalid file of buffers. The message names the file, the position in it, what was found there
/// and what was expected.
class FileError : public CommandError {
public:
    FileError(const std::string& file, const std::string& position, const std::string& what);
};

/// An invalid field. The reader of the file that catches it adds the position.
struct FieldProblem {
    Field field;
    std::string what;  ///< "found …, expected …"
};

/// Collects the fields of one buffer.
class BufferFields {
public:
    /// Sets a field from its text in the file. Throws FieldProblem.
    void set(Field field, std::string_view text);
    bool has(Field field) const noexcept { return (given_ & bit(field)) != 0; }
    /// Appends the buffer to `buffers` and starts the next one. Throws FieldProblem for a field
    /// that is missing or contradicts others.
    void move_to(Buffers& buffers);

private:
    static constexpr unsigned bit(Field field) noexcept {
        return 1U << static_cast<unsigned>(field);
    }
    void check(const Buffers& buffers) const;

    unsigned given_ = 0;
    std::string id_;
    TensorLifetime lifetime_;
    std::uint64_t offset_ = 0;
};

/// Returns "found \"text\"", cut if it is long, with control characters escaped.
std::string found(std::string_view text);

/// The maximum of sizes and offsets, so that the sum of two cannot overflow.
inline constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 62) - 1;
/// Parses a whole number from 0 to `max_bytes`. Returns nullopt for anything else.
std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept;

}  // namespace tensorpool::command::planning
