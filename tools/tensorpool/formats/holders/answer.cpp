#include "formats/holders/answer.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include <tensorpool/holder_request.hpp>

#include "common/html.hpp"
#include "common/pause.hpp"
#include "common/settings.hpp"
#include "common/table.hpp"

namespace tensorpool::command::holders {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t known_version = 1;
constexpr std::size_t max_names = 100;  // in any list of the answer

/// Reads fields and reports the first that is not as expected.
class Fields {
public:
    Fields(const Json& object, std::uint64_t process) : object_(object), process_(process) {
        if (!object.is_object()) fail("an entry", "an object");
    }

    std::uint64_t number(const char* name) const {
        const Json& field = at(name);
        if (!field.is_number_unsigned()) fail(name, "a whole number");
        return field.get<std::uint64_t>();
    }
    bool truth(const char* name) const {
        const Json& field = at(name);
        if (!field.is_boolean()) fail(name, "true or false");
        return field.get<bool>();
    }
    std::string text(const char* name) const { return text_of(at(name), name); }
    std::vector<std::string> texts(const char* name) const {
        std::vector<std::string> texts;
        for (const Json& one : list(name)) texts.push_back(text_of(one, name));
        return texts;
    }
    std::vector<std::uint64_t> numbers(const char* name) const {
        std::vector<std::uint64_t> numbers;
        for (const Json& one : list(name)) {
            if (!one.is_number_unsigned()) fail(name, "whole numbers");
            numbers.push_back(one.get<std::uint64_t>());
        }
        return numbers;
    }
    const Json& list(const char* name) const {
        const Json& field = at(name);
        if (!field.is_array() || field.size() > max_names) {
            fail(name, fmt::format("a list of at most {}", max_names));
        }
        return field;
    }
    bool has(const char* name) const { return object_.contains(name); }
    [[noreturn]] void fail(std::string_view what, std::string_view expected) const {
        throw CommandError(finding,
                           fmt::format("process {}: {} of its answer is not {}: it may use another "
                                       "version of tensorpool than this command",
                                       process_, what, expected));
    }

private:
    const Json& at(const char* name) const {
        const auto field = object_.find(name);
        if (field == object_.end()) fail(name, "there");
        return *field;
    }
    std::string text_of(const Json& field, const char* name) const {
        if (!field.is_string()) fail(name, "a text");
        return field.get<std::string>();
    }

    const Json& object_;
    std::uint64_t process_;
};

HeldMemory memory_in(const Fields& fields) {
    return {.bytes = fields.number("bytes"),
            .type = fields.text("type"),
            .shape = fields.numbers("shape"),
            .element_type = fields.text("dtype"),
            .device = fields.text("device"),
            .held_by = fields.texts("held_by"),
            .more_holders = fields.number("more_holders")};
}

constexpr const char* without_holder = "no Python object: C or C++ code, or the autograd graph";

std::string array_text(const HeldMemory& memory) {
    std::string text =
        fmt::format("{} ({}) {}", memory.type, fmt::join(memory.shape, ", "), memory.element_type);
    if (memory.device != "cpu") text += " on " + memory.device;
    return printable(text);
}

std::string holder_text(const HeldMemory& memory, std::size_t at, bool is_cut) {
    if (memory.held_by.empty()) return is_cut ? "unknown: the search was cut" : without_holder;
    std::string text = printable(memory.held_by[at]);
    if (at + 1 == memory.held_by.size() && memory.more_holders != 0) {
        text += fmt::format(" and {} more", with_commas(memory.more_holders));
    }
    return text;
}

}  // namespace

Answer parse_answer(std::uint64_t process, std::string_view text) {
    if (text.empty()) {
        throw CommandError(
            finding,
            fmt::format("process {} names no holders: start it with `tensorpool run "
                        "--with holders -- ...`, or call tensorpool.enable_holders() in it",
                        process));
    }
    const Json json = Json::parse(text, nullptr, false);
    const Fields fields(json, process);
    if (fields.has("error")) {
        throw CommandError(finding, fmt::format("process {} could not name holders: {}", process,
                                                printable(fields.text("error"))));
    }
    if (fields.number("version") != known_version) {
        fields.fail("the version", std::to_string(known_version));
    }
    Answer answer{.objects = fields.number("objects"),
                  .pause_seconds = static_cast<double>(fields.number("pause_ns")) / 1e9,
                  .is_cut = fields.truth("is_cut"),
                  .largest = {}};
    for (const Json& one : fields.list("largest")) {
        answer.largest.push_back(memory_in(Fields(one, process)));
    }
    std::ranges::stable_sort(answer.largest, std::ranges::greater(), &HeldMemory::bytes);
    return answer;
}

std::string to_json(const Answer& answer, std::uint64_t process, std::size_t top) {
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

Answer ask(const StatisticsReader& process, std::chrono::nanoseconds patience) {
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

std::string to_text(const Answer& answer, std::uint64_t process, std::size_t top, Sizes sizes) {
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
