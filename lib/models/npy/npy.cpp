#include "models/npy/npy.hpp"

#include <charconv>

/// @file
/// NumPy's array files, versions 1.0, 2.0 and 3.0 of numpy.lib.format.

namespace tensorpool::files {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

void read_magic(ByteReader& in) {
    const std::uint64_t begin = in.position();
    const std::string_view found = in.take_text(magic.size(), "magic");
    if (found == magic) return;
    in.fail("magic", begin, "found " + in_quotes(found) + ", expected " + in_quotes(magic));
}

std::uint32_t read_version(ByteReader& in) {
    const auto major = in.read<std::uint8_t>("version");
    const auto minor = in.read<std::uint8_t>("version");
    if (major >= 1 && major <= 3 && minor == 0) return major;
    in.fail("version", in.position() - 2,
            "found " + std::to_string(major) + '.' + std::to_string(minor) +
                ", expected 1.0, 2.0 or 3.0");
}

std::uint64_t read_header_length(ByteReader& in, std::uint32_t version) {
    constexpr const char* field = "header length";
    return version == 1 ? in.read<std::uint16_t>(field) : in.read<std::uint32_t>(field);
}

ElementType type_of(const ByteReader& in, const NpyHeader& header) {
    if (const auto type = find_numpy_type(header.descr)) return {header.descr, *type};
    const bool objects = header.descr.find('O') != std::string_view::npos;
    in.fail("header", header.descr_offset,
            "found the type " + in_quotes(header.descr) +
                (objects ? ", expected one without Python's objects: they are pickled"
                         : ", expected a type of NumPy such as '<f4'"));
}

void check_data(const ByteReader& in, std::uint64_t bytes) {
    if (bytes == in.left()) return;
    in.fail("data", in.position(),
            "found " + std::to_string(in.left()) + " B to the end, expected " +
                std::to_string(bytes) + " B by shape and type" +
                (in.left() > bytes ? " and no second array" : ""));
}

/// Returns the name of the file without its folder and extension.
std::string_view stem_of(std::string_view file) {
    file.remove_prefix(file.find_last_of("/\\") + 1);
    if (file.ends_with(".npy")) file.remove_suffix(4);
    return is_utf8(file) ? file : "array";
}

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Parses the subset of Python's literals that such a header contains.
class HeaderParser {
public:
    HeaderParser(const ByteReader& in, std::string_view text, std::uint64_t offset)
        : in_(in), text_(text), offset_(offset) {}

    NpyHeader read() {
        expect('{', "a dictionary");
        while (!accept('}')) {
            read_pair();
            if (accept(',')) continue;
            expect('}', "',' or '}'");
            break;
        }
        skip_spaces();
        if (at_ != text_.size()) fail("expected the header's end");
        if (!has_descr_) fail("expected the key 'descr'");
        if (!has_order_) fail("expected the key 'fortran_order'");
        if (!has_shape_) fail("expected the key 'shape'");
        return std::move(header_);
    }

private:
    void read_pair() {
        const std::uint64_t begin = next_offset();
        const std::string_view key = read_string();
        expect(':', "':'");
        if (key == "descr" && !has_descr_) {
            has_descr_ = true;
            read_descr();
        } else if (key == "fortran_order" && !has_order_) {
            has_order_ = true;
            header_.fortran_order = read_bool();
        } else if (key == "shape" && !has_shape_) {
            has_shape_ = true;
            read_shape();
        } else {
            in_.fail("header", begin,
                     "found the key " + in_quotes(key) +
                         ", expected 'descr', 'fortran_order' and 'shape', each once");
        }
    }

    void read_descr() {
        header_.descr_offset = next_offset();
        if (peek() == '[' || peek() == '(') {
            in_.fail("header", header_.descr_offset,
                     "found a structured type, expected a simple one such as '<f4': save its "
                     "fields one by one");
        }
        header_.descr = read_string();
    }

    bool read_bool() {
        if (accept_word("True")) return true;
        if (accept_word("False")) return false;
        fail("expected True or False");
    }

    void read_shape() {
        header_.shape_offset = next_offset();
        expect('(', "'(', where a shape begins");
        while (!accept(')')) {
            if (header_.shape.size() == max_dimensions) {
                fail("expected at most " + std::to_string(max_dimensions) + " dimensions");
            }
            header_.shape.push_back(read_number());
            if (accept(',')) continue;
            // In Python, a single value in parentheses without a comma is a number, not a tuple.
            if (header_.shape.size() == 1) fail("expected ','");
            expect(')', "',' or ')'");
            break;
        }
    }

    std::uint64_t read_number() {
        skip_spaces();
        std::uint64_t number = 0;
        const char* const end = text_.data() + text_.size();
        const auto [rest, error] = std::from_chars(text_.data() + at_, end, number);
        if (error == std::errc::result_out_of_range) fail("expected a number below 2^64");
        if (error != std::errc()) fail("expected a number");
        at_ = static_cast<std::size_t>(rest - text_.data());
        accept_word("L");  // Python 2 wrote this suffix after long numbers
        return number;
    }

    /// Reads a string without escapes: no key and no simple type has any.
    std::string_view read_string() {
        const char quote = peek();
        if (quote != '\'' && quote != '"') fail("expected a string in quotes");
        const std::size_t begin = ++at_;
        const std::size_t end = text_.find(quote, begin);
        if (end == std::string_view::npos) fail("expected a closing quote");
        at_ = end + 1;
        return text_.substr(begin, end - begin);
    }

    void skip_spaces() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }
    /// Returns the next character that is not a space; 0 at the end.
    char peek() {
        skip_spaces();
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool accept(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    bool accept_word(std::string_view word) {
        skip_spaces();
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    void expect(char c, const char* what) {
        if (!accept(c)) fail("expected " + std::string(what));
    }

    std::uint64_t next_offset() {
        skip_spaces();
        return offset_ + at_;
    }
    [[noreturn]] void fail(const std::string& expected) {
        skip_spaces();
        const std::string_view rest = text_.substr(at_, 16);
        in_.fail("header", offset_ + at_,
                 "found " + (rest.empty() ? "its end" : in_quotes(rest)) + ", " + expected);
    }

    const ByteReader& in_;
    const std::string_view text_;
    const std::uint64_t offset_;
    std::size_t at_ = 0;
    NpyHeader header_;
    bool has_descr_ = false;
    bool has_order_ = false;
    bool has_shape_ = false;
};

}  // namespace

std::uint32_t read_npy_array(ByteReader& in, std::string_view name, ModelContents& to) {
    read_magic(in);
    const std::uint32_t version = read_version(in);
    const std::uint64_t length = read_header_length(in, version);
    const std::uint64_t begin = in.position();
    const NpyHeader header = read_npy_header(in, in.take_text(length, "header"), begin);
    const ElementType type = type_of(in, header);
    const std::uint64_t bytes =
        tensor_bytes(in, header.shape, type.data, "header", header.shape_offset, "a shape");
    check_data(in, bytes);
    to.tensors.push_back({.name = name,
                          .type = type,
                          .shape = to.shapes.add(header.shape),
                          .column_major = header.fortran_order,
                          .offset = in.position(),
                          .bytes = bytes});
    return version;
}

void read_npy(ModelContents& to) {
    to.format = ModelFormat::npy;
    ByteReader in(to.bytes, to.name);
    to.version = read_npy_array(in, stem_of(to.name), to);
    to.index_tensors();
}

NpyHeader read_npy_header(const ByteReader& in, std::string_view text, std::uint64_t offset) {
    return HeaderParser(in, text, offset).read();
}

}  // namespace tensorpool::files
