#pragma once

/// @file
/// The buffers of a file: their lifetimes and, if present, offsets. Readers throw FileError with
/// `name` as the file's name.

#include <array>
#include <optional>

#include "common/output.hpp"
#include "common/settings.hpp"
#include "common/units.hpp"
#include "formats/trace/recording.hpp"

namespace tensorpool::command::planning {

struct Buffers {
    std::vector<TensorLifetime> lifetimes;
    std::vector<std::string> ids;             ///< one for each buffer: any text
    std::vector<std::uint64_t> offsets;       ///< one for each buffer; empty if the file has none
    std::optional<std::uint64_t> peak_bytes;  ///< the size of the plan according to the file
    std::string clock = "time";               ///< the unit of time, for people
    std::string origin;  ///< the part of the file, for people; "" if it is the whole file
};

/// Returns the maximum bytes alive at once, which no plan can go below.
std::uint64_t lower_bound_of(const std::vector<TensorLifetime>& lifetimes);

std::uint64_t peak_of(const std::vector<TensorLifetime>& lifetimes,
                      const std::vector<std::uint64_t>& offsets);

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

/// Reads buffers from CSV in the format of public benchmark sets. A header line names the columns
/// `id,lower,upper,size[,alignment][,offset]` in any order; one line for each buffer follows. Lines
/// may end with CR LF, blank lines are skipped, and values with commas are in double quotes.
/// Without ids, buffers are numbered from 0.
Buffers read_csv(std::string_view text, const std::string& name);

/// Reads buffers from JSON: an array of objects with the field names of the CSV format, or an
/// object that has such an array as `buffers` and optionally `peak_bytes`. Other members are
/// ignored.
Buffers read_json(std::string_view text, const std::string& name);

void write_csv(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file);
/// Writes the buffers with the plan's offsets, and the plan's peak, lower bound and method, as
/// JSON.
void write_json(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file);

enum class Kind : std::uint8_t {
    host,     ///< all except devices
    pools,    ///< pools only
    arenas,   ///< arenas, scratches and planned arenas
    devices,  ///< allocators of device memory
    all,
};

struct Choice {
    std::uint64_t process = 0;  ///< process id; 0: the process that requested the most bytes
    /// Names of pools, arenas and so on; empty: all of `kind`.
    std::vector<std::string> sources = {};
    Kind kind = Kind::host;
    std::uint64_t from = 0;                                        ///< the first call
    std::uint64_t to = std::numeric_limits<std::uint64_t>::max();  ///< the call after the last one
    /// The minimum alignment of each buffer; the pool guarantees 64 bytes.
    std::uint64_t alignment = 64;
};

/// Returns the chosen blocks as buffers. Time is counted in calls: a block is alive from the call
/// that allocated it to the call that freed it. A block alive at the end of the recording ends
/// after the last call. Lifetimes are cut at the limits of the choice. A resized block becomes two
/// buffers, one before the resize and one after it. Throws CommandError if no block matches, with a
/// list of what the recording contains.
Buffers buffers_of(const trace::Recording& recording, const Choice& choice,
                   const std::string& name);

/// Reads buffers from CSV, JSON, a trace or a log of RMM; the beginning of the file determines the
/// format. `choice` applies to traces and logs. Throws FileError, and the errors of trace readers.
Buffers read_file(const std::string& path, const Choice& choice);

/// Reads buffers from CSV or JSON in memory. `name` is the file's name in errors. Throws FileError.
Buffers read_text(std::string_view text, const std::string& name);

struct Outcome {
    std::string file;
    std::string origin;  ///< Buffers::origin
    std::size_t buffers = 0;
    MemoryPlan plan;
    bool checked = false;              ///< the plan in the file was checked; nothing was planned
    double seconds = 0;                ///< the time that planning took
    std::uint64_t capacity_bytes = 0;  ///< the capacity that the plan must fit into; 0: none
};

/// Returns how far the peak is above the lower bound, as a fraction of the lower bound; 0 if that
/// is 0.
double gap_of(const MemoryPlan& plan) noexcept;

inline bool fits(const Outcome& outcome) noexcept {
    return outcome.capacity_bytes == 0 || outcome.plan.peak_bytes <= outcome.capacity_bytes;
}

/// Returns the report for people: several lines, the last without a newline.
std::string report_text(const Outcome& outcome, Sizes sizes);
std::string report_json(const Outcome& outcome);

/// Returns the plan as a self-contained SVG: time against offset, with a rectangle for each buffer,
/// coloured by size and with a title, and with lines for the lower bound and the peak. It follows
/// the light or dark setting of the reader's system. Buffers below two pixels, and all but the
/// largest 8,000, are merged in grey and reported as a number, so that the picture of a million
/// buffers takes only a few MB.
std::string picture_of(const Buffers& buffers, const Outcome& outcome);

}  // namespace tensorpool::command::planning
