#include "contest/worker_line.hpp"

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace tensorpool::photos {
namespace {

/// Removes the first word from `rest`, and the space after it.
std::string_view take_word(std::string_view& rest) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return word;
}

template <class Number>
bool take_number(std::string_view& rest, Number& number) {
    const std::string_view word = take_word(rest);
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), number);
    return error == std::errc() && stop == word.data() + word.size();
}

}  // namespace

std::string to_string(const WorkerLine& line) {
    std::string text = line.text;
    std::ranges::replace(text, '\n', ' ');
    switch (line.kind) {
        case WorkerLine::Kind::done:
            return "done " + std::to_string(line.number) + " " + std::to_string(line.pixels);
        case WorkerLine::Kind::failed:
            return "failed " + std::to_string(line.number) + " " + text;
        case WorkerLine::Kind::preload:
            return "preload " + text;
        case WorkerLine::Kind::report:
            return "report " + text;
    }
    return {};
}

WorkerLine parse_worker_line(std::string_view line) {
    using Kind = WorkerLine::Kind;
    std::string_view rest = line;
    const std::string_view kind = take_word(rest);
    WorkerLine parsed{Kind::done, 0, 0, {}};
    if (kind == "done" && take_number(rest, parsed.number) && take_number(rest, parsed.pixels)) {
        return parsed;
    }
    if (kind == "failed" && take_number(rest, parsed.number)) {
        return {Kind::failed, parsed.number, 0, std::string(rest)};
    }
    if (kind == "preload") return {Kind::preload, 0, 0, std::string(rest)};
    if (kind == "report") return {Kind::report, 0, 0, std::string(rest)};
    throw std::runtime_error("unexpected line of a worker: \"" + std::string(line) +
                             "\"; expected done, failed, preload or report");
}

}  // namespace tensorpool::photos
