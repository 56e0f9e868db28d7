#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::testing {

/// A JSON value of the kinds used in reports: objects, arrays, strings and whole numbers.
struct Json {
    std::map<std::string, Json> members;
    std::vector<Json> elements;
    std::string text;
    std::uint64_t number = 0;
};

/// Parses one value of these kinds by the grammar of RFC 8259. Strict: rejects trailing text,
/// duplicate names and raw control characters.
class JsonReader {
public:
    static std::optional<Json> read(std::string_view text) {
        JsonReader reader(text);
        Json value;
        if (!reader.value(value) || !reader.rest_.empty()) return std::nullopt;
        return value;
    }

private:
    explicit JsonReader(std::string_view text) : rest_(text) {}

    bool value(Json& to) {
        if (rest_.empty()) return false;
        switch (rest_.front()) {
            case '{':
                return list('{', '}', [&] { return member(to); });
            case '[':
                return list('[', ']', [&] { return value(to.elements.emplace_back()); });
            case '"':
                return string(to.text);
            case 't':
                to.number = 1;
                return skip_word("true");
            case 'f':
                return skip_word("false");
            default:
                return number(to.number);
        }
    }

    template <class Item>
    bool list(char open, char close, Item item) {
        if (!skip(open)) return false;
        if (skip(close)) return true;
        do {
            if (!item()) return false;
        } while (skip(','));
        return skip(close);
    }

    bool member(Json& to) {
        std::string name;
        if (!string(name) || !skip(':') || to.members.contains(name)) return false;
        return value(to.members[name]);
    }

    bool string(std::string& to) {
        if (!skip('"')) return false;
        while (!rest_.empty() && rest_.front() != '"') {
            if (static_cast<unsigned char>(rest_.front()) < 0x20) return false;
            if (rest_.front() == '\\' ? !escaped(to) : !plain(to)) return false;
        }
        return skip('"');
    }

    bool plain(std::string& to) {
        to += rest_.front();
        rest_.remove_prefix(1);
        return true;
    }

    bool escaped(std::string& to) {
        rest_.remove_prefix(1);
        if (skip('u')) return code_unit(to);
        if (rest_.empty() || (rest_.front() != '"' && rest_.front() != '\\')) return false;
        return plain(to);
    }

    // Reads only code units below 128: no others need to be escaped.
    bool code_unit(std::string& to) {
        if (rest_.size() < 4) return false;
        const unsigned long unit = std::stoul(std::string(rest_.substr(0, 4)), nullptr, 16);
        rest_.remove_prefix(4);
        to += static_cast<char>(unit);
        return unit < 0x80;
    }

    bool number(std::uint64_t& to) {
        const std::size_t digits = rest_.find_first_not_of("0123456789");
        if (digits == 0 || (digits > 1 && rest_.front() == '0')) return false;
        to = std::stoull(std::string(rest_.substr(0, digits)));
        rest_.remove_prefix(digits == std::string_view::npos ? rest_.size() : digits);
        return true;
    }

    bool skip_word(std::string_view word) {
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }

    bool skip(char c) {
        if (rest_.empty() || rest_.front() != c) return false;
        rest_.remove_prefix(1);
        return true;
    }

    std::string_view rest_;
};

}  // namespace tensorpool::testing
