#include "plan/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <tuple>

#include "formats/trace/trace_file.hpp"

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

using trace::Lifetime;
using trace::Recording;

bool is_of(TraceSource source, Kind kind) noexcept {
    const bool of_device = source == TraceSource::device;
    const bool of_arena = source == TraceSource::arena || source == TraceSource::scratch ||
                          source == TraceSource::planned;
    switch (kind) {
        case Kind::host:
            return !of_device;
        case Kind::pools:
            return !of_device && !of_arena;
        case Kind::arenas:
            return of_arena;
        case Kind::devices:
            return of_device;
        case Kind::all:
            return true;
    }
    return false;
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

Buffers buffers_of(const Recording& recording, const Choice& choice, const std::string& name) {
    return Chooser(recording, choice, name).choose();
}

Buffers read_text(std::string_view text, const std::string& name) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    const bool is_json =
        first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
    return is_json ? read_json(text, name) : read_csv(text, name);
}

Buffers read_file(const std::string& path, const Choice& choice) {
    trace::Input input(path);
    if (trace::is_recording(input.text(64))) {
        return buffers_of(trace::read_recording(path), choice, path);
    }
    return read_text(input.text(), path);
}

}  // namespace tensorpool::command::planning
