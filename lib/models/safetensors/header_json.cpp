#include <boost/iterator/iterator_adaptor.hpp>
#include <nlohmann/json.hpp>

#include "models/safetensors/tensors.hpp"

namespace tensorpool::files {
namespace {

/// The limit for the depth of unknown values, which are skipped as the format's own library does.
constexpr unsigned max_depth = 32;

/// An iterator that reports how far the parser has read. The parser does not report positions.
class TrackedIterator : public boost::iterator_adaptor<TrackedIterator, const char*, const char,
                                                       boost::single_pass_traversal_tag> {
public:
    TrackedIterator(const char* at, const char** reached)
        : iterator_adaptor_(at), reached_(reached) {}

private:
    friend class boost::iterator_core_access;
    void increment() { *reached_ = ++base_reference(); }

    const char** reached_;
};

enum class Next {
    header,
    name,  // of a tensor, or __metadata__, or the end of the header
    metadata,
    metadata_key,
    metadata_value,
    tensor,
    tensor_key,
    dtype,
    list,     // of a tensor: its shape or its data offsets
    number,   // of such a list
    ignored,  // a value that is skipped, or a part of one
    nothing,
};

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
        if (next_ != Next::number) return take_ignored("a number");
        const bool is_shape = list_ == &tensor_.shape;
        if (list_->numbers.size() == (is_shape ? max_dimensions : 2)) {
            fail(field_, is_shape ? "found more than " + std::to_string(max_dimensions) +
                                        " dimensions, expected at most that"
                                  : "found a third, expected two");
        }
        list_->numbers.push_back(number);
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
        if (next_ != Next::list) return go_deeper("an array");
        list_->offset = last_offset();
        next_ = Next::number;
        return true;
    }
    bool end_array() {
        if (next_ != Next::number) return come_back();
        if (list_ == &tensor_.data_offsets && list_->numbers.size() != 2) {
            fail(field_, "found fewer than two, expected a beginning and an end");
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
        tensor_.type_offset = 0;
        tensor_.shape.clear();
        tensor_.data_offsets.clear();
        next_ = Next::tensor;
        return true;
    }

    bool begin_field(const std::string& text) {
        next_ = Next::ignored;
        if (text == "dtype") {
            refuse_again("dtype", tensor_.type_offset);
            next_ = Next::dtype;
        } else if (text == "shape") {
            begin_list("shape", tensor_.shape);
        } else if (text == "data_offsets") {
            begin_list("data_offsets", tensor_.data_offsets);
        }
        return true;
    }
    void begin_list(const char* field, NumberList& list) {
        refuse_again(field, list.offset);
        field_ = field;
        list_ = &list;
        next_ = Next::list;
    }
    /// The offset of a part is 0 until the part was read.
    void refuse_again(const char* field, std::uint64_t offset) const {
        if (offset != 0) fail(field, "found it again, expected it once");
    }

    bool finish_tensor() {
        const char* const missing = tensor_.type_offset == 0           ? "dtype"
                                    : tensor_.shape.offset == 0        ? "shape"
                                    : tensor_.data_offsets.offset == 0 ? "data_offsets"
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
        const bool is_list = next_ == Next::list || next_ == Next::number;
        const bool is_text = next_ == Next::metadata_value || next_ == Next::dtype;
        fail(is_list   ? field_
             : is_text ? "value"
                       : "header",
             std::string("found ") + found + ", expected " +
                 (is_text                 ? "a string"
                  : next_ == Next::list   ? "an array"
                  : next_ == Next::number ? "a whole number from 0 to 2^64 - 1"
                                          : "an object"));
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
    const char* field_ = nullptr;  // whose list is `list_`
    NumberList* list_ = nullptr;
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
