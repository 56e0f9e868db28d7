#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "common/printable.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

using Json = nlohmann::json;

/// Handles each value when the parser has read it, so that a million buffers are never in memory as
/// a tree.
class JsonReader {
public:
    explicit JsonReader(const std::string& name) : name_(name) {}

    Buffers read(std::string_view text) try {
        [[maybe_unused]] const Json nothing =
            Json::parse(text, [this](int depth, Event event, const Json& parsed) {
                return take(depth, event, parsed);
            });
        if (list_depth_ == 0) {
            fail("the whole file",
                 "found no array of buffers, expected one, or an object that has one as "
                 "\"buffers\"");
        }
        return std::move(buffers_);
    } catch (const Json::exception& error) {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
        const std::string what = printable(error.what());
        const std::size_t at = what.find("at line");
        // The text ends with the last token, which may be a string of megabytes.
        constexpr std::size_t max_length = 200;
        fail("not JSON", what.substr(at == std::string::npos ? 0 : at + 3, max_length));
    }

private:
    using Event = Json::parse_event_t;

    /// Returns whether the parser keeps it: it does so with containers until they end.
    bool take(int depth, Event event, const Json& parsed) {
        const bool is_of_list = in_list_ && depth == list_depth_;
        switch (event) {
            case Event::key:
                key_ = parsed;
                return true;
            case Event::object_start:
            case Event::array_start:
                begin(depth, event == Event::array_start);
                return true;
            case Event::value:
                if (is_of_list) refuse(text_of(parsed));
                if (in_list_ && depth == list_depth_ + 1) set_field(parsed);
                if (!in_list_ && depth == 1 && key_ == "peak_bytes") set_peak(parsed);
                return false;
            case Event::object_end:
                if (is_of_list) guarded([this] { fields_.move_to(buffers_); });
                return false;
            case Event::array_end:
                if (depth + 1 == list_depth_) in_list_ = false;
                return false;
        }
        return false;
    }

    void begin(int depth, bool is_array) {
        constexpr int max_depth = 64;  // valid files have few levels
        if (depth >= max_depth) fail("the whole file", "found more than 64 levels of nesting");
        if (in_list_ && depth == list_depth_ && is_array) refuse("an array");
        const bool is_list = depth == 0 || (depth == 1 && !in_list_ && key_ == "buffers");
        if (!is_array || !is_list) return;
        if (list_depth_ != 0) fail("buffers", "found it twice, expected it once");
        list_depth_ = depth + 1;
        in_list_ = true;
    }

    static std::string text_of(const Json& value) {
        return value.is_string() ? value.get<std::string>() : value.dump();
    }
    [[noreturn]] void refuse(std::string_view text) const {
        fail(position(), found(text) + ", expected an object for each buffer");
    }
    void set_peak(const Json& value) {
        buffers_.peak_bytes = value.is_number() ? parse_bytes(text_of(value)) : std::nullopt;
        if (buffers_.peak_bytes) return;
        fail("peak_bytes",
             found(text_of(value)) + ", expected bytes: a whole number from 0 to 2^62 - 1");
    }
    void set_field(const Json& value) {
        const std::optional<Field> field = field_of(key_);
        if (!field) return;
        const bool is_id = *field == Field::id;
        guarded([&] {
            if (!value.is_number() && !(is_id && value.is_string())) {
                throw FieldProblem{*field,
                                   fmt::format("{}, expected a number{}", found(text_of(value)),
                                               is_id ? " or a string" : "")};
            }
            fields_.set(*field, text_of(value));
        });
    }

    template <class Part>
    void guarded(Part&& part) {
        try {
            part();
        } catch (const FieldProblem& problem) {
            fail(fmt::format("{}.{}", position(), to_string(problem.field)), problem.what);
        }
    }
    std::string position() const { return fmt::format("buffers[{}]", buffers_.lifetimes.size()); }
    [[noreturn]] void fail(const std::string& position, const std::string& what) const {
        throw FileError(name_, position, what);
    }

    const std::string& name_;
    Buffers buffers_;
    BufferFields fields_;
    std::string key_;     // the last one
    int list_depth_ = 0;  // of the elements of the list of buffers; 0: there was none
    bool in_list_ = false;
};

}  // namespace

Buffers read_json(std::string_view text, const std::string& name) {
    return JsonReader(name).read(text);
}

void write_json(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file) {
    file.write(
        fmt::format("{{\"peak_bytes\": {}, \"lower_bound_bytes\": {}, \"method\": \"{}\", "
                    "\"optimal\": {},\n \"buffers\": [",
                    plan.peak_bytes, plan.lower_bound_bytes, to_string(plan.method), plan.optimal));
    for (std::size_t i = 0; i < buffers.lifetimes.size(); ++i) {
        const TensorLifetime& lifetime = buffers.lifetimes[i];
        const nlohmann::ordered_json buffer = {{"id", buffers.ids[i]},
                                               {"lower", lifetime.begin},
                                               {"upper", lifetime.end},
                                               {"size", lifetime.bytes},
                                               {"alignment", lifetime.alignment},
                                               {"offset", plan.offsets[i]}};
        file.write((i == 0 ? "\n  " : ",\n  ") + json_line(buffer));
    }
    file.write("\n ]}\n");
}

}  // namespace tensorpool::command::planning
