#include <iterator>
#include <nlohmann/json.hpp>

#include "models/safetensors/tensors.hpp"

namespace tensorpool::files {
namespace {

/// The limit for the depth of unknown values, which are skipped as the format's own library does.
constexpr unsigned max_depth = 32;

/// An iterator that reports how far the parser has read. The parser does not report positions.
class TrackedIterator {
public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    TrackedIterator(const char* at, const char** reached) : at_(at), reached_(reached) {}
    reference operator*() const { return *at_; }
    TrackedIterator& operator++() {
        *reached_ = ++at_;
        return *this;
    }
    TrackedIterator operator++(int) {
        const TrackedIterator before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const TrackedIterator& one, const TrackedIterator& other) {
        return one.at_ == other.at_;
    }

private:
    const char* at_;
    const char** reached_;
};

/// The next expected element.
enum class Next {
    header,
    name,  // of a tensor, or __metadata__, or the end of the header
    metadata,
    metadata_key,
    metadata_value,
    tensor,
    tensor_key,
    dtype,
    shape,
    dimension,
    data_offsets,
    data_offset,
    ignored,  // a value that is skipped, or a part of one
    nothing,
};

const char* expected(Next next) {
    switch (next) {
        case Next::header:
        case Next::metadata:
        case Next::tensor:
            return "an object";
        case Next::metadata_value:
        case Next::dtype:
            return "a string";
        case Next::shape:
        case Next::data_offsets:
            return "an array";
        case Next::dimension:
        case Next::data_offset:
            return "a whole number from 0 to 2^64 - 1";
        default:
            return "no such value";
    }
}

/// Returns what the library expected after the last input, with a semicolon before it. The
/// input is not escaped and may contain anything, so only the library's own words count.
std::string_view expectation_of(std::string_view text) {
    static constexpr std::string_view known[] = {"; expected string literal",
                                                 "; expected ':'",
                                                 "; expected ']'",
                                                 "; expected '}'",
                                                 "; expected end of input",
                                                 "; expected '[', '{', or a literal"};
    for (const std::string_view expectation : known) {
        if (text.ends_with(expectation)) return expectation;
    }
    return "";
}

/// Removes the library's description of the position, and of the last input, from an error.
std::string reason_of(const std::string& text) {
    const std::size_t dash = text.find(" - ");
    const std::size_t begin = dash == std::string::npos ? 0 : dash + 3;
    // The first of the two is the library's: the input follows.
    const std::size_t number = text.find(" parsing '", begin);
    const std::size_t read = text.find("; last read: '", begin);
    if (number < read) return text.substr(begin, number - begin);
    if (read == std::string::npos) return text.substr(begin);
    return text.substr(begin, read - begin) + std::string(expectation_of(text));
}

/// Receives the parser's events. The names of its functions are given by the library.
class HeaderHandler {
public:
    HeaderHandler(std::string_view header, std::uint64_t offset, ModelContents& to,
                  SafetensorsTensors& tensors)
        : header_(header),
          offset_(offset),
          to_(to),
          tensors_(tensors),
          in_(to.bytes, to.name),
          reached_(header.data()) {}

    void run() {
        refuse_zeros();
        using nlohmann::json;
        const char* const end = header_.data() + header_.size();
        json::sax_parse(TrackedIterator(header_.data(), &reached_), TrackedIterator(end, &reached_),
                        this);
        refuse_duplicate_keys();
    }

    bool null() { return take_ignored("null"); }
    bool boolean(bool) { return take_ignored("true or false"); }
    bool number_integer(std::int64_t) { return take_ignored("a negative number"); }
    bool number_float(double, const std::string&) {
        return take_ignored("a number with a fraction, or too large");
    }
    bool binary(std::vector<std::uint8_t>&) { return take_ignored("bytes"); }
    bool number_unsigned(std::uint64_t number) {
        if (next_ == Next::dimension) return take_dimension(number);
        if (next_ != Next::data_offset) return take_ignored("a number");
        tensor_.data_offsets.push_back(number);
        if (tensor_.data_offsets.size() > 2) fail("data_offsets", "found a third, expected two");
        return true;
    }

    bool string(const std::string& text) {
        if (next_ == Next::metadata_value) {
            to_.metadata.push_back({key_, view_of(text)});
            key_offsets_.push_back(key_offset_);
            next_ = Next::metadata_key;
            return true;
        }
        if (next_ != Next::dtype) return take_ignored("a string");
        tensor_.type_offset = text_offset(text);
        tensor_.type = view_of(text);
        next_ = Next::tensor_key;
        return true;
    }

    bool start_object(std::size_t) {
        switch (next_) {
            case Next::header:
                next_ = Next::name;
                return true;
            case Next::metadata:
                next_ = Next::metadata_key;
                return true;
            case Next::tensor:
                next_ = Next::tensor_key;
                return true;
            default:
                return go_deeper("an object");
        }
    }
    bool end_object() {
        switch (next_) {
            case Next::name:
                next_ = Next::nothing;
                return true;
            case Next::metadata_key:
                in_.leave();
                next_ = Next::name;
                return true;
            case Next::tensor_key:
                return finish_tensor();
            default:
                return come_back();
        }
    }
    bool key(const std::string& text) {
        switch (next_) {
            case Next::name:
                return begin_entry(text);
            case Next::metadata_key:
                key_offset_ = text_offset(text);
                key_ = view_of(text);
                in_.enter("metadata", to_.metadata.size());
                in_.call(key_);
                next_ = Next::metadata_value;
                return true;
            case Next::tensor_key:
                return begin_field(text);
            default:
                return true;
        }
    }

    bool start_array(std::size_t) {
        if (next_ == Next::shape) {
            tensor_.shape_offset = last_offset();
            next_ = Next::dimension;
        } else if (next_ == Next::data_offsets) {
            tensor_.data_offsets_offset = last_offset();
            next_ = Next::data_offset;
        } else {
            return go_deeper("an array");
        }
        return true;
    }
    bool end_array() {
        if (next_ != Next::dimension && next_ != Next::data_offset) return come_back();
        if (next_ == Next::data_offset && tensor_.data_offsets.size() != 2) {
            fail("data_offsets", "found fewer than two, expected a beginning and an end");
        }
        next_ = Next::tensor_key;
        return true;
    }

    bool parse_error(std::size_t position, const std::string& token,
                     const nlohmann::json::exception& error) {
        in_.leave();
        in_.fail("header", offset_ + (position == 0 ? 0 : position - 1),
                 "found " + in_quotes(token) + ", expected JSON: " + reason_of(error.what()));
    }

private:
    /// The parser would take a zero byte as the end, and ignore everything behind it.
    void refuse_zeros() const {
        const std::size_t zero = header_.find('\0');
        if (zero == std::string_view::npos) return;
        in_.fail("header", offset_ + zero, "found a byte of 0, expected JSON");
    }

    bool begin_entry(const std::string& text) {
        if (text == "__metadata__") {
            if (std::exchange(has_metadata_, true)) {
                fail("header", "found __metadata__ again, expected it once");
            }
            next_ = Next::metadata;
            return true;
        }
        tensor_.name_offset = text_offset(text);
        tensor_.name = view_of(text);
        in_.enter("tensor", to_.tensors.size());
        in_.call(tensor_.name);
        has_dtype_ = has_shape_ = has_offsets_ = false;
        next_ = Next::tensor;
        return true;
    }

    bool begin_field(const std::string& text) {
        if (text == "dtype") {
            return begin_known("dtype", has_dtype_, Next::dtype);
        }
        if (text == "shape") {
            tensor_.shape.clear();
            return begin_known("shape", has_shape_, Next::shape);
        }
        if (text == "data_offsets") {
            tensor_.data_offsets.clear();
            return begin_known("data_offsets", has_offsets_, Next::data_offsets);
        }
        next_ = Next::ignored;
        return true;
    }
    bool begin_known(const char* field, bool& seen, Next next) {
        if (std::exchange(seen, true)) fail(field, "found it again, expected it once");
        next_ = next;
        return true;
    }

    bool take_dimension(std::uint64_t number) {
        if (tensor_.shape.size() == max_dimensions) {
            fail("shape", "found more than " + std::to_string(max_dimensions) +
                              " dimensions, expected at most that");
        }
        tensor_.shape.push_back(number);
        return true;
    }

    bool finish_tensor() {
        const char* const missing = !has_dtype_     ? "dtype"
                                    : !has_shape_   ? "shape"
                                    : !has_offsets_ ? "data_offsets"
                                                    : nullptr;
        if (missing != nullptr) in_.fail(missing, tensor_.name_offset, "found none, expected one");
        tensors_.add(tensor_);
        in_.leave();
        next_ = Next::name;
        return true;
    }

    bool take_ignored(const char* found) {
        if (next_ != Next::ignored) fail_unexpected(found);
        if (depth_ == 0) next_ = Next::tensor_key;
        return true;
    }
    bool go_deeper(const char* found) {
        if (next_ != Next::ignored) fail_unexpected(found);
        if (++depth_ > max_depth) {
            fail("header", "found values nested deeper than " + std::to_string(max_depth) +
                               ", expected at most that");
        }
        return true;
    }
    bool come_back() {
        if (--depth_ == 0) next_ = Next::tensor_key;
        return true;
    }

    [[noreturn]] void fail_unexpected(const char* found) const {
        const char* const field = next_ == Next::dtype || next_ == Next::metadata_value ? "value"
                                  : next_ == Next::dimension || next_ == Next::shape    ? "shape"
                                  : next_ == Next::data_offset || next_ == Next::data_offsets
                                      ? "data_offsets"
                                      : "header";
        fail(field, std::string("found ") + found + ", expected " + expected(next_));
    }
    [[noreturn]] void fail(const char* field, const std::string& problem) const {
        in_.fail(field, last_offset(), problem);
    }

    void refuse_duplicate_keys() {
        const auto duplicates = to_.index_metadata();
        if (!duplicates) return;
        in_.fail_duplicate("metadata", duplicates->second, to_.metadata[duplicates->second].key,
                           duplicates->first, "key", "key", key_offsets_[duplicates->second]);
    }

    /// Returns the offset of the last character that was read. For a number, that is the one after
    /// it.
    std::uint64_t last_offset() const {
        return offset_ + static_cast<std::uint64_t>(reached_ - header_.data()) - 1;
    }
    /// Returns the beginning of a text that has just been read, if it has no escapes. Its end is
    /// known: the quote that was read last.
    const char* text_begin(const std::string& text) const {
        const auto read = static_cast<std::size_t>(reached_ - header_.data());
        return reached_ - 1 - std::min(text.size(), read - 1);
    }
    std::uint64_t text_offset(const std::string& text) const {
        return offset_ + static_cast<std::uint64_t>(text_begin(text) - header_.data());
    }
    /// Returns the text in the file, or a decoded copy if it has escapes.
    std::string_view view_of(const std::string& text) {
        const std::string_view in_file(text_begin(text), text.size());
        return in_file == text ? in_file : to_.decoded.emplace_back(text);
    }

    const std::string_view header_;
    const std::uint64_t offset_;
    ModelContents& to_;
    SafetensorsTensors& tensors_;
    ByteReader in_;
    const char* reached_;

    Next next_ = Next::header;
    unsigned depth_ = 0;  // within a value that is skipped
    SafetensorsTensor tensor_;
    bool has_metadata_ = false;
    bool has_dtype_ = false;
    bool has_shape_ = false;
    bool has_offsets_ = false;
    std::string_view key_;
    std::uint64_t key_offset_ = 0;
    std::vector<std::uint64_t> key_offsets_;
};

}  // namespace

void read_safetensors_header(std::string_view header, std::uint64_t offset, ModelContents& to,
                             SafetensorsTensors& tensors) {
    HeaderHandler(header, offset, to, tensors).run();
}

}  // namespace tensorpool::files
