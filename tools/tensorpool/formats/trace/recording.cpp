#include "formats/trace/recording.hpp"

#include <queue>
#include <unordered_map>

#include "common/units.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::trace {
namespace {

std::string shown_beginning(std::string_view beginning) {
    if (beginning.empty()) return "an empty file";
    return fmt::format("a file that begins with \"{}\"", printable(beginning.substr(0, 24)));
}

bool is_trace(std::string_view beginning) {
    return beginning.starts_with(std::string_view(trace_magic, sizeof trace_magic));
}

Recording read(Input&& input) {
    const std::string beginning = input.text(64);
    if (is_trace(beginning)) return read_trace(std::move(input));
    if (beginning.starts_with(rmm_log_beginning)) return read_rmm_log(input.text(), input.name());
    throw TraceError(input.name(), 0,
                     fmt::format("found {}; expected a trace, which begins with TPTRACE, or a log "
                                 "of RMM, which begins with {}",
                                 shown_beginning(beginning), rmm_log_beginning));
}

// Finds the lifetime of each block, from the call that made it to the call that ended it.

/// A block of an arena or a scratch, keyed by its beginning: an address or an offset.
using Placed = std::pair<std::uint64_t, std::uint32_t>;

/// The blocks that are alive in a pool, an arena or a scratch. Some may have ended already.
struct Holdings {
    std::vector<std::uint32_t> blocks;   // of a pool: all blocks so far
    std::priority_queue<Placed> placed;  // the last position on top
    std::uint64_t offset = 0;            // of a scratch: the offset of the next block
    // Of a device's allocator, by address. Its addresses may overlap those of other sources, for
    // example of the pool it takes its memory from, and two devices may use the same addresses.
    std::unordered_map<std::uint64_t, std::uint32_t> alive;
};

class Lives {
public:
    explicit Lives(const Recording& recording)
        : recording_(recording),
          alive_(recording.processes.size()),
          held_(recording.sources.size()) {}

    std::vector<Lifetime> find() {
        for (std::uint32_t i = 0; i < recording_.calls.size(); ++i) look_at(i);
        lifetimes_.insert(lifetimes_.begin(), earlier_.begin(), earlier_.end());
        return std::move(lifetimes_);
    }

private:
    const Call& call(std::uint32_t i) const { return recording_.calls[i]; }
    std::uint32_t process_of(std::uint32_t i) const {
        return recording_.threads[call(i).thread].process;
    }
    Holdings& holdings(std::uint32_t i) { return held_[call(i).source]; }
    std::unordered_map<std::uint64_t, std::uint32_t>& alive(std::uint32_t source,
                                                            std::uint32_t process) {
        const bool of_device = recording_.sources[source].kind == TraceSource::device;
        return of_device ? held_[source].alive : alive_[process];
    }
    std::unordered_map<std::uint64_t, std::uint32_t>& alive(std::uint32_t i) {
        return alive(call(i).source, process_of(i));
    }

    void look_at(std::uint32_t i) {
        switch (call(i).action) {
            case TraceAction::allocate:
                return holdings(i).blocks.push_back(begin(i));
            case TraceAction::deallocate:
                return end_one(i);
            case TraceAction::resize:
                return resize(i);
            case TraceAction::defer:
                return defer(i);
            case TraceAction::arena_allocate:
                return holdings(i).placed.emplace(call(i).address, begin(i));
            case TraceAction::arena_release:
            case TraceAction::scratch_release:
                return end_from(i);
            case TraceAction::scratch_mark:
                // Blocks beyond the mark have ended, even if that entry was dropped.
                end_from(i);
                holdings(i).offset = call(i).address;
                return;
            case TraceAction::scratch_allocate:
                return holdings(i).placed.emplace(holdings(i).offset, begin(i));
            case TraceAction::gone:
                return end_all(i);
            default:
                return;
        }
    }

    std::uint32_t begin(std::uint32_t i) {
        const auto number = static_cast<std::uint32_t>(lifetimes_.size());
        const auto [at, is_new] = alive(i).try_emplace(call(i).address, number);
        if (!is_new) {  // the entry of its end was dropped
            lifetimes_[at->second].end = i;
            at->second = number;
        }
        lifetimes_.push_back(lifetime(i, i, Lifetime::none));
        return number;
    }

    void end_one(std::uint32_t i) {
        auto& alive = this->alive(i);
        const auto found = alive.find(call(i).address);
        if (found == alive.end()) {
            earlier_.push_back(lifetime(i, Lifetime::none, i));
            return;
        }
        lifetimes_[found->second].end = i;
        alive.erase(found);
    }

    void defer(std::uint32_t i) {
        const auto found = alive(i).find(call(i).address);
        if (found != alive(i).end()) lifetimes_[found->second].deferred = i;
    }

    void resize(std::uint32_t i) {
        end_one(i);
        const std::uint32_t number = begin(i);
        lifetimes_[number].continues = true;
        holdings(i).blocks.push_back(number);
    }

    // Ends all blocks from this position on.
    void end_from(std::uint32_t i) {
        auto& placed = holdings(i).placed;
        for (; !placed.empty() && placed.top().first >= call(i).address; placed.pop()) {
            end(placed.top().second, i);
        }
    }

    void end_all(std::uint32_t i) {
        Holdings gone = std::exchange(holdings(i), {});
        for (const std::uint32_t number : gone.blocks) end(number, i);
        for (; !gone.placed.empty(); gone.placed.pop()) end(gone.placed.top().second, i);
    }

    void end(std::uint32_t number, std::uint32_t i) {
        Lifetime& lifetime = lifetimes_[number];
        if (lifetime.end != Lifetime::none) return;
        lifetime.end = i;
        alive(lifetime.source, lifetime.process).erase(lifetime.address);
    }

    Lifetime lifetime(std::uint32_t i, std::uint32_t begin, std::uint32_t end) const {
        return {.begin = begin,
                .end = end,
                .process = process_of(i),
                .source = call(i).source,
                .address = call(i).address,
                .bytes = call(i).bytes,
                .continues = false,
                .deferred = Lifetime::none,
                .stream = call(i).stream};
    }

    const Recording& recording_;
    std::vector<Lifetime> earlier_;  // blocks made before the recording
    std::vector<Lifetime> lifetimes_;
    // For each process: the lifetime that is alive at an address.
    std::vector<std::unordered_map<std::uint64_t, std::uint32_t>> alive_;
    std::vector<Holdings> held_;  // indexed by source
};

std::uint64_t alignment_of(const Recording& recording, const Lifetime& lifetime) {
    constexpr std::uint64_t pool_alignment = 64;
    constexpr unsigned max_alignment_log2 = 62;  // larger alignments occur only in damaged files
    if (lifetime.begin == Lifetime::none) return pool_alignment;
    const unsigned requested = recording.calls[lifetime.begin].alignment_log2;
    return std::max(pool_alignment, std::uint64_t{1} << std::min(requested, max_alignment_log2));
}

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t day_ns = 86'400 * second_ns;

enum Column : std::size_t { thread, time, action, pointer, size, stream, column_count };
using Columns = std::array<std::string_view, column_count>;

/// Parses "0x7f00", or a null pointer as the C library prints it.
std::optional<std::uint64_t> address(std::string_view text) {
    if (text == "(nil)") return 0;
    if (!text.starts_with("0x")) return std::nullopt;
    return parse_whole<std::uint64_t>(text.substr(2), 16);
}

std::optional<std::uint64_t> field(std::string_view text, std::uint64_t limit) {
    const auto value = parse_whole<std::uint64_t>(text);
    return value && *value < limit ? value : std::nullopt;
}

/// Parses "HH:MM:SS.ffffff". Older versions have a colon before the microseconds.
std::optional<std::uint64_t> time_of_day_ns(std::string_view text) {
    if (text.size() != 15 || text[2] != ':' || text[5] != ':' || (text[8] != '.' && text[8] != ':'))
        return std::nullopt;
    const auto hours = field(text.substr(0, 2), 24);
    const auto minutes = field(text.substr(3, 2), 60);
    const auto seconds = field(text.substr(6, 2), 61);
    const auto micros = field(text.substr(9), 1'000'000);
    if (!hours || !minutes || !seconds || !micros) return std::nullopt;
    return ((*hours * 60 + *minutes) * 60 + *seconds) * second_ns + *micros * 1000;
}

std::optional<TraceAction> action_of(std::string_view text) {
    if (text == "allocate") return TraceAction::allocate;
    if (text == "allocate failure") return TraceAction::refuse;
    if (text == "free") return TraceAction::deallocate;
    return std::nullopt;
}

std::optional<Columns> split(std::string_view line) {
    Columns columns;
    std::size_t count = 0;
    for (std::size_t begin = 0; begin <= line.size(); ++count) {
        if (count == column_count) return std::nullopt;
        const std::size_t end = std::min(line.find(',', begin), line.size());
        columns[count] = line.substr(begin, end - begin);
        begin = end + 1;
    }
    return count == column_count ? std::optional(columns) : std::nullopt;
}

class RmmLog {
public:
    explicit RmmLog(const std::string& name) : name_(name) {
        recording_.processes.push_back({.name = "rmm"});
        recording_.sources.push_back({.name = "?"});
        recording_.sources.push_back({.number = 1, .name = "rmm"});
        recording_.modules.push_back({.path = "?"});
        recording_.stacks.emplace_back();
    }

    Recording read(std::string_view text) {
        while (offset_ < text.size()) {
            const std::size_t end = std::min(text.find('\n', offset_), text.size());
            std::string_view line = text.substr(offset_, end - offset_);
            if (line.ends_with('\r')) line.remove_suffix(1);
            // The first line has the titles of the columns.
            if (offset_ != 0 && !line.empty()) add(line);
            offset_ = end + 1;
        }
        return std::move(recording_);
    }

private:
    [[noreturn]] void fail(std::string_view found, std::string_view expected) const {
        throw TraceError(
            name_, offset_,
            fmt::format("found \"{}\"; expected {}", printable(found.substr(0, 80)), expected));
    }

    void add(std::string_view line) {
        const auto columns = split(line);
        if (!columns) fail(line, "six columns: Thread,Time,Action,Pointer,Size,Stream");
        const Columns& of = *columns;
        const auto moment = time_of_day_ns(of[time]);
        if (!moment) fail(of[time], "a time, such as 23:59:59.000001");
        const auto what = action_of(of[action]);
        if (!what) fail(of[action], "allocate, allocate failure or free");
        const auto where = address(of[pointer]);
        if (!where) fail(of[pointer], "a pointer, such as 0x7f0000000000");
        const auto bytes = parse_whole<std::uint64_t>(of[size]);
        if (!bytes || *bytes > UINT64_MAX - *where) fail(of[size], "a size in bytes");
        recording_.calls.push_back({.time_ns = since_begin(*moment),
                                    .address = *where,
                                    .bytes = *bytes,
                                    .thread = thread_of(of[thread]),
                                    .source = 1,
                                    .action = *what});
    }

    // Lines are in the order in which they were written. A thread may read the clock before another
    // thread but write its line later.
    std::uint64_t since_begin(std::uint64_t time_of_day) {
        if (recording_.calls.empty()) begin_ = last_of_day_ = time_of_day;
        if (time_of_day + day_ns / 2 < last_of_day_) days_ns_ += day_ns;
        last_of_day_ = time_of_day;
        const std::uint64_t now = days_ns_ + time_of_day;
        latest_ = std::max(latest_, now < begin_ ? 0 : now - begin_);
        return latest_;
    }

    std::uint32_t thread_of(std::string_view text) {
        const auto parsed = parse_whole<std::uint64_t>(text);
        if (!parsed) fail(text, "a thread id");
        const auto [at, is_new] =
            threads_.try_emplace(*parsed, static_cast<std::uint32_t>(recording_.threads.size()));
        if (is_new) recording_.threads.push_back({.process = 0, .number = *parsed});
        return at->second;
    }

    const std::string& name_;
    std::size_t offset_ = 0;  // of the present line
    Recording recording_;
    std::unordered_map<std::uint64_t, std::uint32_t> threads_;
    std::uint64_t begin_ = 0;
    std::uint64_t last_of_day_ = 0;
    std::uint64_t days_ns_ = 0;
    std::uint64_t latest_ = 0;
};

}  // namespace

bool is_recording(std::string_view beginning) {
    return is_trace(beginning) || beginning.starts_with(rmm_log_beginning);
}

std::string RecordedSource::name_and_kind() const {
    constexpr std::array names = {"pool", "arena", "scratch", "scope", "device", "planned"};
    return fmt::format("{} ({})", name, names[static_cast<std::size_t>(kind) - 1]);
}

Recording read_recording(const std::string& path) {
    return read(Input(path));
}

Recording read_recording(std::span<const std::byte> bytes, const std::string& name) {
    return read(Input(bytes, name));
}

std::vector<Lifetime> lifetimes_of(const Recording& recording) {
    return Lives(recording).find();
}

LifetimeOrder::LifetimeOrder(std::vector<Lifetime> lifetimes) : lifetimes_(std::move(lifetimes)) {
    for (std::uint32_t i = 0; i < lifetimes_.size(); ++i) {
        if (lifetimes_[i].end != Lifetime::none) by_end_.push_back(i);
    }
    std::ranges::stable_sort(by_end_, {}, [this](std::uint32_t i) { return lifetimes_[i].end; });
}

std::vector<TensorLifetime> steps_of(const Recording& recording, const LifetimeOrder& order) {
    const std::vector<Lifetime>& recorded = order.lifetimes();
    std::vector<TensorLifetime> steps(recorded.size());
    std::int64_t now = 0;
    order.walk([&](std::size_t i) { steps[i].begin = now++; },
               [&](std::size_t i) { steps[i].end = now; });
    for (std::size_t i = 0; i < recorded.size(); ++i) {
        steps[i].bytes = recorded[i].bytes;
        steps[i].alignment = alignment_of(recording, recorded[i]);
        if (recorded[i].end == Lifetime::none) steps[i].end = now;
        // A block that was freed by the call that allocated it was never handed out.
        if (steps[i].end <= steps[i].begin) steps[i] = {steps[i].begin, steps[i].begin + 1, 0, 1};
    }
    return steps;
}

Recording read_rmm_log(const std::string& text, const std::string& name) {
    return RmmLog(name).read(text);
}

}  // namespace tensorpool::command::trace
