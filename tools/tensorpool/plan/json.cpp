#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "common/printable.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

using Json = nlohmann::ordered_json;

/// Handles the events of the parser, so that a million buffers are never in memory as a tree.
class JsonReader : public nlohmann::json_sax<Json> {
public:
    explicit JsonReader(const std::string& name) : name_(name) {}

    Buffers take() {
        if (!has_buffers_) {
            throw FileError(name_, "the whole file",
                            "found no array of buffers, expected one, or an object that has one "
                            "as \"buffers\"");
        }
        return std::move(buffers_);
    }

    bool start_object(std::size_t) override {
        if (at_ == At::list && depth_ == list_depth_) at_ = At::buffer;
        return open();
    }
    bool start_array(std::size_t) override {
        const bool is_list = depth_ == 0 || (depth_ == 1 && at_ == At::top && key_ == "buffers");
        if (is_list && !has_buffers_) {
            has_buffers_ = true;
            at_ = At::list;
            list_depth_ = depth_ + 1;
        } else if (is_list) {
            fail("buffers", "found it twice, expected it once");
        }
        return open();
    }
    bool end_object() override {
        --depth_;
        if (at_ != At::buffer || depth_ != list_depth_) return true;
        at_ = At::list;
        guarded([this] { fields_.move_to(buffers_); });
        return true;
    }
    bool end_array() override {
        --depth_;
        if (at_ == At::list && depth_ + 1 == list_depth_) at_ = At::top;
        return true;
    }
    bool key(string_t& key) override {
        key_ = key;
        return true;
    }
    bool string(string_t& text) override { return value(text, Kind::text); }
    bool number_integer(number_integer_t number) override {
        return value(std::to_string(number), Kind::number);
    }
    bool number_unsigned(number_unsigned_t number) override {
        return value(std::to_string(number), Kind::number);
    }
    bool number_float(number_float_t, const string_t& text) override {
        return value(text, Kind::number);
    }
    bool null() override { return value("null", Kind::other); }
    bool boolean(bool is_true) override { return value(is_true ? "true" : "false", Kind::other); }
    bool binary(binary_t&) override { return value("bytes", Kind::other); }
    bool parse_error(std::size_t, const std::string&,
                     const nlohmann::detail::exception& error) override {
        // "[json.exception.parse_error.101] parse error at line 1, column 2: …"
        const std::string text = printable(error.what());
        const std::size_t at = text.find("at line");
        // The text ends with the last token, which may be a string of megabytes.
        constexpr std::size_t max_length = 200;
        throw FileError(name_, "not JSON",
                        text.substr(at == std::string::npos ? 0 : at + 3, max_length));
    }

private:
    enum class At { top, list, buffer };
    enum class Kind { text, number, other };

    bool open() {
        // An array in the list of buffers is rejected, whatever it contains.
        if (at_ == At::list && depth_ == list_depth_) value("an array", Kind::other);
        // The parser needs a bit for each level of nesting, and valid files have few levels.
        constexpr std::size_t max_depth = 64;
        if (++depth_ > max_depth) fail("the whole file", "found more than 64 levels of nesting");
        return true;
    }
    bool value(std::string_view text, Kind kind) {
        if (at_ == At::list) {
            fail(position(), found(text) + ", expected an object for each buffer");
        }
        if (at_ == At::top) return depth_ == 1 && key_ == "peak_bytes" ? peak(text, kind) : true;
        const std::optional<Field> field =
            depth_ == list_depth_ + 1 ? field_of(key_) : std::nullopt;
        if (field) guarded([&] { set(*field, text, kind); });
        return true;
    }
    bool peak(std::string_view text, Kind kind) {
        buffers_.peak_bytes = kind == Kind::number ? parse_bytes(text) : std::nullopt;
        if (buffers_.peak_bytes) return true;
        fail("peak_bytes", found(text) + ", expected bytes: a whole number from 0 to 2^62 - 1");
    }
    void set(Field field, std::string_view text, Kind kind) {
        const bool fits = kind == Kind::number || (kind == Kind::text && field == Field::id);
        if (!fits) {
            throw FieldProblem{field, fmt::format("{}, expected a number{}", found(text),
                                                  field == Field::id ? " or a string" : "")};
        }
        fields_.set(field, text);
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
    std::string key_;
    At at_ = At::top;
    std::size_t depth_ = 0;
    std::size_t list_depth_ = 0;  // depth of the direct elements of the list of buffers
    bool has_buffers_ = false;
};

}  // namespace

Buffers read_json(std::string_view text, const std::string& name) {
    JsonReader reader(name);
    Json::sax_parse(text.begin(), text.end(), &reader);
    return reader.take();
}

void write_json(const Buffers& buffers, const MemoryPlan& plan, WrittenFile& file) {
    file.write(
        fmt::format("{{\"peak_bytes\": {}, \"lower_bound_bytes\": {}, \"method\": \"{}\", "
                    "\"optimal\": {},\n \"buffers\": [",
                    plan.peak_bytes, plan.lower_bound_bytes, to_string(plan.method), plan.optimal));
    for (std::size_t i = 0; i < buffers.lifetimes.size(); ++i) {
        const TensorLifetime& lifetime = buffers.lifetimes[i];
        const Json buffer = {{"id", buffers.ids[i]},
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
