#include "formats/holders/answer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/printable.hpp"
#include "common/settings.hpp"

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
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tensorpool::command::holders
