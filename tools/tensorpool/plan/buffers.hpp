#pragma once

/// @file
/// The buffers of a file: their lifetimes and, if present, offsets. Readers throw FileError with
/// `name` as the file's name.

#include <set>

#include "common/output.hpp"
#include "common/units.hpp"
#include "formats/trace/recording.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::planning {

struct Buffers {
    std::vector<TensorLifetime> lifetimes;
    std::vector<std::string> ids;             ///< one for each buffer: any text
    std::vector<std::uint64_t> offsets;       ///< one for each buffer; empty if the file has none
    std::optional<std::uint64_t> peak_bytes;  ///< the size of the plan according to the file
    std::string clock = "time";               ///< the unit of time, for people
    std::string origin;  ///< the part of the file, for people; "" if it is the whole file
};

enum class Field : std::uint8_t { id, lower, upper, size, alignment, offset };
inline constexpr std::array field_names = {"id", "lower", "upper", "size", "alignment", "offset"};
inline constexpr const char* all_field_names = "id, lower, upper, size, alignment and offset";
constexpr const char* to_string(Field field) noexcept {
    return field_names[static_cast<std::size_t>(field)];
}

/// An invalid file of buffers. The message names the file, the position in it, what was found there
/// and what was expected.
class FileError : public CommandError {
public:
    FileError(const std::string& file, const std::string& position, const std::string& what)
        : CommandError(finding, fmt::format("{}: {}: {}", printable(file), position, what)) {}
};

/// An invalid field. The reader of the file that catches it adds the position.
struct FieldProblem {
    Field field;
    std::string what;  ///< "found …, expected …"
};

/// Returns "found \"text\"", cut if it is long, with control characters escaped.
inline std::string found(std::string_view text) {
    constexpr std::size_t max_length = 40;
    if (text.empty()) return "found nothing";
    const bool cut = text.size() > max_length;
    return fmt::format("found \"{}{}\"", printable(text.substr(0, max_length)), cut ? "…" : "");
}

inline std::int64_t time_of(Field field, std::string_view text) {
    // Below the limits of the type, so that adding or subtracting one cannot overflow.
    constexpr std::int64_t max_time = std::int64_t{1} << 62;
    const auto time = parse_whole<std::int64_t>(text);
    if (time && *time >= -max_time && *time <= max_time) return *time;
    throw FieldProblem{field, found(text) + ", expected a time: a whole number from -2^62 to 2^62"};
}

/// The maximum of sizes and offsets, so that the sum of two cannot overflow.
inline constexpr std::uint64_t max_bytes = (std::uint64_t{1} << 62) - 1;

/// Parses a whole number from 0 to `max_bytes`. Returns nullopt for anything else.
inline std::optional<std::uint64_t> parse_bytes(std::string_view text) noexcept {
    const auto bytes = parse_whole<std::uint64_t>(text);
    return bytes && *bytes <= max_bytes ? bytes : std::nullopt;
}

inline std::uint64_t bytes_of(Field field, std::string_view text) {
    if (const auto bytes = parse_bytes(text)) return *bytes;
    throw FieldProblem{field, found(text) + ", expected bytes: a whole number from 0 to 2^62 - 1"};
}

inline std::uint64_t alignment_of(std::string_view text) {
    const auto alignment = parse_bytes(text);
    if (alignment && std::has_single_bit(*alignment)) return *alignment;
    throw FieldProblem{Field::alignment,
                       found(text) + ", expected an alignment in bytes: a power of two"};
}

class BufferFields {
public:
    /// Sets a field from its text in the file. Throws FieldProblem.
    void set(Field field, std::string_view text) {
        if (has(field)) throw FieldProblem{field, found(text) + ", expected it once"};
        if (field == Field::id) id_ = text;
        if (field == Field::lower) lifetime_.begin = time_of(field, text);
        if (field == Field::upper) lifetime_.end = time_of(field, text);
        if (field == Field::size) lifetime_.bytes = bytes_of(field, text);
        if (field == Field::alignment) lifetime_.alignment = alignment_of(text);
        if (field == Field::offset) offset_ = bytes_of(field, text);
        given_ |= bit(field);
    }
    bool has(Field field) const noexcept { return (given_ & bit(field)) != 0; }
    /// Appends the buffer to `buffers` and starts the next one. Throws FieldProblem for a field
    /// that is missing or contradicts others.
    void move_to(Buffers& buffers) {
        check(buffers);
        buffers.ids.push_back(has(Field::id) ? std::move(id_)
                                             : std::to_string(buffers.lifetimes.size()));
        buffers.lifetimes.push_back(lifetime_);
        if (has(Field::offset)) buffers.offsets.push_back(offset_);
        *this = {};
    }

private:
    static constexpr unsigned bit(Field field) noexcept {
        return 1U << static_cast<unsigned>(field);
    }
    void check(const Buffers& buffers) const {
        for (const Field needed : {Field::lower, Field::upper, Field::size}) {
            if (!has(needed))
                throw FieldProblem{needed, "found nothing, expected it for each buffer"};
        }
        if (lifetime_.end <= lifetime_.begin) {
            throw FieldProblem{Field::upper,
                               fmt::format("found {}, expected a time above lower, {}",
                                           lifetime_.end, lifetime_.begin)};
        }
        const bool others_have = !buffers.offsets.empty();
        if (!buffers.lifetimes.empty() && has(Field::offset) != others_have) {
            throw FieldProblem{
                Field::offset,
                fmt::format("found {}, but the buffers before have {}; expected all or none",
                            others_have ? "none" : "one", others_have ? "one each" : "none")};
        }
    }

    unsigned given_ = 0;
    std::string id_;
    TensorLifetime lifetime_;
    std::uint64_t offset_ = 0;
};

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

using trace::Lifetime;
using trace::Recording;

inline bool is_of(TraceSource source, Kind kind) noexcept {
    const bool of_device = source == TraceSource::device;
    const bool of_arena = source == TraceSource::arena || source == TraceSource::scratch ||
                          source == TraceSource::planned;
    if (kind == Kind::host) return !of_device;
    if (kind == Kind::pools) return !of_device && !of_arena;
    if (kind == Kind::arenas) return of_arena;
    return kind == Kind::all || of_device;
}

class Chooser {
public:
    Chooser(const Recording& recording, const Choice& choice, const std::string& name)
        : recording_(recording), choice_(choice), name_(name) {}

    Buffers choose() {
        to_ = std::min<std::uint64_t>(choice_.to, recording_.calls.size() + 1);
        const std::vector<Lifetime> lifetimes = trace::lifetimes_of(recording_);
        const std::uint32_t process = process_of(lifetimes);
        for (const Lifetime& lifetime : lifetimes) {
            if (lifetime.process == process && is_chosen(lifetime)) add(lifetime);
        }
        buffers_.clock = "calls";
        buffers_.origin = describe(process);
        return std::move(buffers_);
    }

private:
    /// Returns the call at which a block begins: -1 for a block made before the recording.
    std::int64_t begin_of(const Lifetime& lifetime) const noexcept {
        const std::int64_t begin =
            lifetime.begin == Lifetime::none ? -1 : std::int64_t{lifetime.begin};
        return choice_.from == 0 ? begin : std::max(begin, static_cast<std::int64_t>(choice_.from));
    }
    std::int64_t end_of(const Lifetime& lifetime) const noexcept {
        const std::uint64_t end =
            lifetime.end == Lifetime::none ? recording_.calls.size() + 1 : lifetime.end;
        return static_cast<std::int64_t>(std::min(end, to_));
    }
    bool is_chosen(const Lifetime& lifetime) const {
        const trace::RecordedSource& source = recording_.sources[lifetime.source];
        const auto& names = choice_.sources;
        const bool is_named = std::find(names.begin(), names.end(), source.name) != names.end();
        return (names.empty() ? is_of(source.kind, choice_.kind) : is_named) &&
               begin_of(lifetime) < end_of(lifetime);
    }

    /// Returns the process with the most chosen bytes. Throws CommandError if nothing is chosen.
    std::uint32_t process_of(const std::vector<Lifetime>& lifetimes) const {
        std::vector<double> bytes(recording_.processes.size());
        for (const Lifetime& lifetime : lifetimes) {
            // One is added so that requests of 0 bytes count too. The sum is a double because the
            // sizes in a damaged file may exceed any integer.
            if (is_chosen(lifetime))
                bytes[lifetime.process] += static_cast<double>(lifetime.bytes) + 1;
        }
        std::size_t best = 0;
        double max_bytes_seen = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            const bool may_be =
                choice_.process == 0 || recording_.processes[i].number == choice_.process;
            if (!may_be || bytes[i] <= max_bytes_seen) continue;
            best = i;
            max_bytes_seen = bytes[i];
        }
        if (max_bytes_seen > 0) return static_cast<std::uint32_t>(best);
        throw CommandError(finding, fmt::format("{}: contains no block that matches the options; "
                                                "it contains {}",
                                                printable(name_), what_there_is(lifetimes)));
    }

    std::string what_there_is(const std::vector<Lifetime>& lifetimes) const {
        std::set<std::string> names;
        for (const Lifetime& lifetime : lifetimes) {
            const trace::RecordedSource& source = recording_.sources[lifetime.source];
            names.insert(fmt::format("\"{}\"{} of process {}", printable(source.name),
                                     source.kind == TraceSource::device ? " (a device)" : "",
                                     recording_.processes[lifetime.process].number));
        }
        constexpr std::size_t max_names = 10;
        std::string text = fmt::format("{} calls", recording_.calls.size());
        std::size_t reported = 0;
        for (const std::string& name : names) {
            text += reported++ < max_names ? ", " + name : "";
        }
        return names.size() > max_names
                   ? fmt::format("{} and {} more", text, names.size() - max_names)
                   : text;
    }

    void add(const Lifetime& lifetime) {
        if (lifetime.bytes > max_bytes) {
            throw CommandError(
                finding, fmt::format("{}: contains a block of {} bytes, expected at most 2^62 - 1",
                                     printable(name_), lifetime.bytes));
        }
        unsigned alignment_log2 = 0;
        if (lifetime.begin != Lifetime::none) {
            alignment_log2 =
                std::min<unsigned>(recording_.calls[lifetime.begin].alignment_log2, 62);
        }
        const std::string& source = recording_.sources[lifetime.source].name;
        buffers_.ids.push_back(lifetime.begin == Lifetime::none
                                   ? fmt::format("{}#before", source)
                                   : fmt::format("{}#{}", source, lifetime.begin));
        buffers_.lifetimes.push_back(
            {begin_of(lifetime), end_of(lifetime), lifetime.bytes,
             std::max(choice_.alignment, std::uint64_t{1} << alignment_log2)});
    }

    std::string describe(std::uint32_t process) const {
        const trace::RecordedProcess& chosen = recording_.processes[process];
        const std::size_t count = recording_.processes.size();
        std::string text = fmt::format("process {} ({})", chosen.number, printable(chosen.name));
        if (count > 1) text += fmt::format(" of {}", count);
        if (choice_.from == 0 && to_ > recording_.calls.size()) return text;
        return text +
               fmt::format(", calls {} to {} of {}", choice_.from, to_, recording_.calls.size());
    }

    const Recording& recording_;
    const Choice& choice_;
    const std::string& name_;
    std::uint64_t to_ = 0;
    Buffers buffers_;
};

/// Returns the maximum bytes alive at once, which no plan can go below.
inline std::uint64_t lower_bound_of(const std::vector<TensorLifetime>& lifetimes) {
    // The times, and by how much the bytes alive change. Ends sort before beginnings of the same
    // time, because intervals are half-open.
    std::vector<std::pair<std::int64_t, std::int64_t>> changes;
    changes.reserve(2 * lifetimes.size());
    for (const TensorLifetime& lifetime : lifetimes) {
        const auto bytes = static_cast<std::int64_t>(lifetime.bytes);  // at most `max_bytes`
        changes.emplace_back(lifetime.begin, bytes);
        changes.emplace_back(lifetime.end, -bytes);
    }
    std::ranges::sort(changes);
    std::uint64_t alive = 0;
    std::uint64_t max = 0;
    for (const auto& [time, bytes] : changes) {
        alive += static_cast<std::uint64_t>(bytes);
        max = std::max(max, alive);
    }
    return max;
}

inline std::uint64_t peak_of(const std::vector<TensorLifetime>& lifetimes,
                             const std::vector<std::uint64_t>& offsets) {
    std::uint64_t peak = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
        peak = std::max(peak, offsets[i] + lifetimes[i].bytes);
    }
    return peak;
}

/// Returns the field of this name, or nullopt if there is none.
inline std::optional<Field> field_of(std::string_view name) noexcept {
    const auto* const at = std::find(field_names.begin(), field_names.end(), name);
    if (at == field_names.end()) return std::nullopt;
    return static_cast<Field>(at - field_names.begin());
}

/// Returns the chosen blocks as buffers. Time is counted in calls: a block is alive from the call
/// that allocated it to the call that freed it. A block alive at the end of the recording ends
/// after the last call. Lifetimes are cut at the limits of the choice. A resized block becomes two
/// buffers, one before the resize and one after it. Throws CommandError if no block matches, with a
/// list of what the recording contains.
inline Buffers buffers_of(const Recording& recording, const Choice& choice,
                          const std::string& name) {
    return Chooser(recording, choice, name).choose();
}

/// Reads buffers from CSV or JSON in memory. `name` is the file's name in errors. Throws FileError.
inline Buffers read_text(std::string_view text, const std::string& name) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool is_json =
        first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    return is_json ? read_json(text, name) : read_csv(text, name);
}

/// Reads buffers from CSV, JSON, a trace or a log of RMM; the beginning of the file determines the
/// format. `choice` applies to traces and logs. Throws FileError, and the errors of trace readers.
inline Buffers read_file(const std::string& path, const Choice& choice) {
    trace::Input input(path);
    if (trace::is_recording(input.text(64))) {
        return buffers_of(trace::read_recording(path), choice, path);
    }
    return read_text(input.text(), path);
}

}  // namespace tensorpool::command::planning
