#pragma once

/// @file
/// The answer of a process to the question what refers to its largest arrays.

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include <tensorpool/holder_request.hpp>

#include "common/html.hpp"
#include "common/table.hpp"
#include "common/target.hpp"
#include "common/units.hpp"

namespace tensorpool::command::holders {

struct HeldMemory {
    std::uint64_t bytes = 0;
    std::string type;  ///< "numpy.ndarray"
    std::vector<std::uint64_t> shape;
    std::string element_type;          ///< "float32"
    std::string device;                ///< "cpu"
    std::vector<std::string> held_by;  ///< names such as "__main__.history[3]"; may be empty
    std::uint64_t more_holders = 0;    ///< that are not among these
};

struct Answer {
    std::uint64_t objects = 0;  ///< that were looked at
    double pause_seconds = 0;   ///< for which the program stood still
    bool is_cut = false;        ///< the search ended because it took too long
    std::vector<HeldMemory> largest;
};

using Json = nlohmann::json;

inline constexpr std::uint64_t known_version = 1;
inline constexpr std::size_t max_names = 100;  // in any list of the answer

// The library checks the types and reports the first field that is not as expected.

inline std::uint64_t whole(const Json& json) {
    return json.get_ref<const Json::number_unsigned_t&>();
}

template <class Item, class Read>
std::vector<Item> list_of(const Json& json, Read read) {
    const auto& list = json.get_ref<const Json::array_t&>();
    if (list.size() > max_names) {
        throw std::length_error(fmt::format("it has a list of more than {}", max_names));
    }
    std::vector<Item> items;
    for (const Json& one : list) items.push_back(read(one));
    return items;
}

inline HeldMemory memory_in(const Json& json) {
    const auto text = [](const Json& one) { return one.get<std::string>(); };
    return {.bytes = whole(json.at("bytes")),
            .type = text(json.at("type")),
            .shape = list_of<std::uint64_t>(json.at("shape"), whole),
            .element_type = text(json.at("dtype")),
            .device = text(json.at("device")),
            .held_by = list_of<std::string>(json.at("held_by"), text),
            .more_holders = whole(json.at("more_holders"))};
}

inline Answer answer_in(const Json& json) {
    if (whole(json.at("version")) != known_version) {
        throw std::runtime_error(fmt::format("its version is not {}", known_version));
    }
    return {.objects = whole(json.at("objects")),
            .pause_seconds = static_cast<double>(whole(json.at("pause_ns"))) / 1e9,
            .is_cut = json.at("is_cut").get<bool>(),
            .largest = list_of<HeldMemory>(json.at("largest"), memory_in)};
}

inline constexpr const char* without_holder =
    "no Python object: C or C++ code, or the autograd graph";

inline std::string array_text(const HeldMemory& memory) {
    std::string text =
        fmt::format("{} ({}) {}", memory.type, fmt::join(memory.shape, ", "), memory.element_type);
    if (memory.device != "cpu") text += " on " + memory.device;
    return printable(text);
}

inline std::string holder_text(const HeldMemory& memory, std::size_t at, bool is_cut) {
    if (memory.held_by.empty()) return is_cut ? "unknown: the search was cut" : without_holder;
    std::string text = printable(memory.held_by[at]);
    if (at + 1 == memory.held_by.size() && memory.more_holders != 0) {
        text += fmt::format(" and {} more", with_commas(memory.more_holders));
    }
    return text;
}

/// Parses the text of another process, of which nothing is taken for granted. Throws CommandError
/// if it is no answer, or if the process reports that the search failed.
inline Answer parse_answer(std::uint64_t process, std::string_view text) {
    if (text.empty()) {
        throw CommandError(
            finding,
            fmt::format("process {} names no holders: start it with `tensorpool run "
                        "--with holders -- ...`, or call tensorpool.enable_holders() in it",
                        process));
    }
    const Json json = Json::parse(text, nullptr, false);
    if (json.is_object() && json.contains("error") && json["error"].is_string()) {
        throw CommandError(finding, fmt::format("process {} could not name holders: {}", process,
                                                printable(json["error"].get<std::string>())));
    }
    try {
        Answer answer = answer_in(json);
        std::ranges::stable_sort(answer.largest, std::ranges::greater(), &HeldMemory::bytes);
        return answer;
    } catch (const std::exception& error) {
        throw CommandError(finding,
                           fmt::format("process {}: its answer is not as expected ({}): it may use "
                                       "another version of tensorpool than this command",
                                       process, printable(error.what())));
    }
}

inline std::string to_json(const Answer& answer, std::uint64_t process, std::size_t top) {
    nlohmann::ordered_json json = {{"process", process},
                                   {"objects", answer.objects},
                                   {"pause_seconds", answer.pause_seconds},
                                   {"is_cut", answer.is_cut}};
    json["largest"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < std::min(top, answer.largest.size()); ++i) {
        const HeldMemory& one = answer.largest[i];
        json["largest"].push_back({{"bytes", one.bytes},
                                   {"type", one.type},
                                   {"shape", one.shape},
                                   {"dtype", one.element_type},
                                   {"device", one.device},
                                   {"held_by", one.held_by},
                                   {"more_holders", one.more_holders}});
    }
    return json_line(json);
}

/// Asks a process what refers to its largest arrays, and waits for the answer. Throws CommandError
/// if there is none in this time, and AttachError.
inline Answer ask(const StatisticsReader& process, std::chrono::nanoseconds patience) {
    const HolderRequest request = HolderRequest::ask(process.process());
    std::optional<std::string> text;
    (void)wait_for_answer(process, patience, [&] {
        text = request.answer();
        return text.has_value();
    });
    const bool has_ended = !process.is_running();  // its answer ended with it
    if (text && !(text->empty() && has_ended)) return parse_answer(process.process(), *text);
    if (has_ended) {
        throw CommandError(target_gone,
                           fmt::format("process {} ended before it answered", process.process()));
    }
    throw CommandError(
        finding,
        fmt::format("process {} did not answer within {:.1f} s: none of its threads took a slow "
                    "path of a pool, for example for a large array, or its main thread ran no "
                    "Python code since; with TENSORPOOL_RETAIN_BACKGROUND=on in its environment, "
                    "a thread sees requests at once",
                    process.process(), std::chrono::duration<double>(patience).count()));
}

inline std::string to_text(const Answer& answer, std::uint64_t process, std::size_t top,
                           Sizes sizes) {
    std::string text = fmt::format("process {} paused for {:.0f} ms to look at {} objects", process,
                                   answer.pause_seconds * 1e3, with_commas(answer.objects));
    if (answer.is_cut) text += "; the search was cut, because it took too long";
    Table table{.columns = {{"bytes"}, {"array", Side::left}, {"held by", Side::left}}};
    for (std::size_t i = 0; i < std::min(top, answer.largest.size()); ++i) {
        const HeldMemory& one = answer.largest[i];
        table.rows.push_back({{format_size(one.bytes, sizes)},
                              {array_text(one)},
                              {holder_text(one, 0, answer.is_cut)}});
        for (std::size_t at = 1; at < one.held_by.size(); ++at) {
            table.rows.push_back({{}, {}, {holder_text(one, at, answer.is_cut)}});
        }
    }
    if (table.rows.empty()) return text + "\nit holds no NumPy array and no PyTorch tensor";
    text += '\n' + table_text(table, 1000);
    text.pop_back();
    return text;
}

}  // namespace tensorpool::command::holders
