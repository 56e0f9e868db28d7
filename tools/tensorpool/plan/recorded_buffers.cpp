
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "formats/trace/trace_file.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

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

std::string read(trace::Input& input, std::uint64_t bytes) {
    std::string text(bytes, '\0');
    text.resize(input.read(0, std::as_writable_bytes(std::span(text))));
    return text;
}

}  // namespace

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
    constexpr std::uint64_t beginning_bytes = 64;
    if (trace::is_recording(read(input, std::min(beginning_bytes, input.bytes())))) {
        return buffers_of(trace::read_recording(path), choice, path);
    }
    return read_text(read(input, input.bytes()), path);
}

}  // namespace tensorpool::command::planning
