#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "formats/trace/recording.hpp"
#include "formats/trace/trace_file.hpp"

namespace tensorpool::command::trace {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t day_ns = 86'400 * second_ns;

enum Column : std::size_t { thread, time, action, pointer, size, stream, column_count };
using Columns = std::array<std::string_view, column_count>;

std::optional<std::uint64_t> number(std::string_view text, int base = 10) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Parses "0x7f00", or a null pointer as the C library prints it.
std::optional<std::uint64_t> address(std::string_view text) {
    if (text == "(nil)") return 0;
    if (!text.starts_with("0x")) return std::nullopt;
    return number(text.substr(2), 16);
}

std::optional<std::uint64_t> field(std::string_view text, std::uint64_t limit) {
    const auto value = number(text);
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
        const auto bytes = number(of[size]);
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
        const auto parsed = number(text);
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

Recording read_rmm_log(const std::string& text, const std::string& name) {
    return RmmLog(name).read(text);
}

}  // namespace tensorpool::command::trace
