#include "architecture/class_members.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

namespace tensorpool::architecture {
namespace {

struct Token {
    std::string text;  ///< a name, a number, `""` for a string or character, or one character
    int line;
};

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Splits a text into tokens, without comments and preprocessor lines.
class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    std::vector<Token> run() {
        while (at_ < text_.size()) step();
        return std::move(tokens_);
    }

private:
    bool follows(std::string_view word) const { return text_.substr(at_).starts_with(word); }

    void skip(std::size_t end) {
        end = std::min(end, text_.size());
        line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
        at_ = end;
    }

    void skip_past(std::string_view word) {
        const std::size_t found = text_.find(word, at_);
        skip(found == text_.npos ? found : found + word.size());
    }

    void step() {
        const char c = text_[at_];
        if (follows("//")) return skip(text_.find('\n', at_));
        if (follows("/*")) return skip_past("*/");
        if (std::isspace(static_cast<unsigned char>(c))) return skip(at_ + 1);
        if (c == '#') return preprocessor_line();
        if (follows("R\"")) return raw_string();
        if (c == '"' || c == '\'') return string(c);
        std::size_t end = at_ + 1;
        // An apostrophe in a number separates digits.
        while (is_word(c) && end < text_.size() &&
               (is_word(text_[end]) || (text_[end] == '\'' && std::isdigit(c))))
            ++end;
        add(std::string(text_.substr(at_, end - at_)));
        skip(end);
    }

    void add(std::string text) {
        if (!left_out_) tokens_.push_back({std::move(text), line_});
    }

    void string(char quote) {
        add("\"\"");
        std::size_t end = at_ + 1;
        while (end < text_.size() && text_[end] != quote) end += text_[end] == '\\' ? 2 : 1;
        skip(end + 1);
    }

    void raw_string() {
        add("\"\"");
        const std::size_t open = text_.find('(', at_);
        const std::string mark(text_.substr(at_ + 2, open - at_ - 2));
        skip_past(")" + mark + "\"");
    }

    void preprocessor_line() {
        std::size_t end = text_.find('\n', at_);
        while (end != text_.npos && text_[end - 1] == '\\') end = text_.find('\n', end + 1);
        std::string_view line = text_.substr(at_ + 1, end == text_.npos ? end : end - at_ - 1);
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        if (line.starts_with("if")) {
            if (left_out_) ++inner_;
        } else if (line.starts_with("el")) {
            if (inner_ == 0) left_out_ = true;
        } else if (line.starts_with("endif")) {
            if (inner_ > 0)
                --inner_;
            else
                left_out_ = false;
        }
        skip(end);
    }

    std::string_view text_;
    std::size_t at_ = 0;
    int line_ = 1;
    int inner_ = 0;          ///< conditions that began in a branch that is left out
    bool left_out_ = false;  ///< in a branch after the first
    std::vector<Token> tokens_;
};

/// Reads declarations from tokens.
class Parser {
public:
    explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
        tokens_.push_back({"", tokens_.empty() ? 1 : tokens_.back().line});
    }

    std::vector<ClassMembers> run() {
        scope("", nullptr);
        if (!at_end()) fail("'}' without '{'");
        return std::move(classes_);
    }

private:
    /// The functions of a class are added to this before the class gets its place in `classes_`.
    using Class = ClassMembers*;

    [[noreturn]] void fail(const std::string& what) const {
        throw std::runtime_error("line " + std::to_string(tokens_[at_].line) + ": " + what);
    }

    bool at_end() const { return at_ + 1 >= tokens_.size(); }
    const std::string& token(std::size_t ahead = 0) const {
        return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].text;
    }
    bool is(std::string_view text) const { return token() == text; }
    bool is_name() const { return is_word(token()[0]) && !std::isdigit(token()[0]); }
    bool take(std::string_view text) {
        if (!is(text)) return false;
        ++at_;
        return true;
    }

    /// Skips a bracket and all up to its partner.
    void skip_brackets() {
        const std::string open = token();
        const char* const close = open == "(" ? ")" : open == "[" ? "]" : "}";
        ++at_;
        while (!is(close)) {
            if (at_end()) fail("'" + open + "' without '" + close + "'");
            skip_one();
        }
        ++at_;
    }
    bool at_brackets() const { return is("(") || is("[") || is("{"); }
    void skip_one() { at_brackets() ? skip_brackets() : static_cast<void>(++at_); }

    /// Skips template arguments or parameters.
    void skip_angles() {
        ++at_;
        while (!is(">")) {
            if (at_end() || is(";")) fail("'<' without '>'");
            // `<<` is a shift.
            if (is("<") && token(1) == "<")
                at_ += 2;
            else
                is("<") ? skip_angles() : skip_one();
        }
        ++at_;
    }

    void skip_past_semicolon() {
        while (!is(";") && !at_end()) skip_one();
        ++at_;
    }

    /// Skips what may stand between any two tokens of a declaration: attributes, macros in
    /// capitals, and `alignas`, `noexcept` and the like with their parentheses.
    bool skip_attribute() {
        static const std::set<std::string> with_parentheses = {
            "alignas", "decltype", "noexcept", "explicit", "throw", "__attribute__", "__declspec"};
        if (is("[") && token(1) == "[") return skip_brackets(), true;
        const bool is_macro =
            token().size() > 3 &&
            std::ranges::all_of(token(),
                                [](char c) {
                                    return c == '_' ||
                                           std::isupper(static_cast<unsigned char>(c)) ||
                                           std::isdigit(c);
                                }) &&
            std::isupper(static_cast<unsigned char>(token()[0]));
        if (!is_macro && !with_parentheses.contains(token())) return false;
        ++at_;
        if (is("(")) skip_brackets();
        return true;
    }

    /// Skips the condition after `requires`.
    void skip_constraint() {
        do {
            while (take("!")) {
            }
            if (take("requires")) {
                if (is("(")) skip_brackets();
                skip_brackets();
            } else if (is("(")) {
                skip_brackets();
            } else {
                qualified_name();
            }
        } while ((is("&") && token(1) == "&" && ++at_ && ++at_) ||
                 (is("|") && token(1) == "|" && ++at_ && ++at_));
    }

    /// Returns a name such as `a::b<T>::c` without template arguments.
    std::string qualified_name() {
        std::string name;
        for (;;) {
            if (take(":")) {
                name += ':';
            } else if (is("<")) {
                skip_angles();
            } else if (is_name() && (name.empty() || name.ends_with(':'))) {
                name += token();
                ++at_;
            } else {
                return name;
            }
            if (is(":") && token(1) != ":" && !name.ends_with(':')) return name;
        }
    }

    /// Reads declarations up to the end of the scope.
    void scope(const std::string& prefix, Class in) {
        while (!is("}") && !at_end()) declaration(prefix, in);
    }

    void braced_scope(const std::string& prefix, Class in) {
        const std::size_t start = at_++;
        scope(prefix, in);
        if (!take("}")) {
            at_ = start;
            fail("'{' without '}'");
        }
    }

    void declaration(const std::string& prefix, Class in) {
        static const std::set<std::string> without_members = {"using", "typedef", "static_assert",
                                                              "concept"};
        if (take(";")) return;
        if (in && (is("public") || is("private") || is("protected")) && token(1) == ":") {
            at_ += 2;
            return;
        }
        if (is("extern") && token(1) == "\"\"" && token(2) == "{") {
            at_ += 2;
            return braced_scope(prefix, in);
        }
        if (is("namespace") || (is("inline") && token(1) == "namespace")) return name_space(prefix);
        for (;;) {
            if (is("template")) {
                ++at_;
                if (is("<")) skip_angles();
            } else if (take("requires")) {
                skip_constraint();
            } else if (!skip_attribute()) {
                break;
            }
        }
        if (without_members.contains(token())) return skip_past_semicolon();
        if (is("friend")) return friend_declaration();
        declarator(prefix, in);
    }

    void name_space(const std::string& prefix) {
        std::string name = prefix;
        while (!is("{") && !is(";") && !is("=") && !at_end()) {
            if (skip_attribute()) continue;
            if (is_name() && !is("namespace") && !is("inline")) name += token() + "::";
            ++at_;
        }
        if (!is("{")) return skip_past_semicolon();
        braced_scope(name, nullptr);
    }

    void friend_declaration() {
        while (!is(";") && !is("{") && !at_end()) is("(") ? skip_brackets() : skip_one();
        if (is("{")) skip_brackets();
        take(";");
    }

    /// Reads a declaration from its type on: a class, a function or a variable.
    void declarator(const std::string& prefix, Class in) {
        std::string last;  // the name before this token
        bool has_type = false;
        while (!is(";") && !is("}") && !at_end()) {
            if (skip_attribute()) {
                continue;
            } else if (is("class") || is("struct") || is("union")) {
                ++at_;
                class_head(prefix);
                last.clear();
                has_type = true;
            } else if (is("enum")) {
                while (!is("{") && !is(";") && !is("(") && !is("=") && !at_end()) ++at_;
                if (is("{")) skip_brackets();
            } else if (is("operator")) {
                return function(in, operator_name());
            } else if (is("~")) {
                at_ += 2;
                return function(nullptr, "");
            } else if (is("=")) {
                return skip_past_semicolon();
            } else if (is("<")) {
                skip_angles();
            } else if (is("(") && !last.empty() && !at_pointer()) {
                const bool is_constructor = in && !has_type;
                return function(is_constructor ? nullptr : in, last);
            } else if (at_brackets()) {
                skip_brackets();
                last.clear();
            } else {
                has_type = has_type || !last.empty();
                last = is_name() && !is_specifier() ? token() : "";
                if (last.empty() && !is_specifier()) has_type = true;
                ++at_;
            }
        }
        take(";");
    }

    /// Whether a declarator in parentheses begins here, as in `int (*name)()` or `int
    /// (A::*name)()`.
    bool at_pointer() const {
        std::size_t ahead = 1;
        while (is_word(token(ahead)[0]) && token(ahead + 1) == ":" && token(ahead + 2) == ":")
            ahead += 3;
        return token(ahead) == "*" || token(ahead) == "&";
    }

    /// Whether this token may stand before the name of a constructor.
    bool is_specifier() const {
        static const std::set<std::string> specifiers = {"inline",   "constexpr", "consteval",
                                                         "explicit", "static",    "virtual"};
        return specifiers.contains(token());
    }

    /// Returns the name after `operator`, up to the parameters.
    std::string operator_name() {
        ++at_;
        std::string name = "operator";
        if (is("(") && token(1) == ")") {
            at_ += 2;
            return name + "()";
        }
        while (!is("(") && !at_end()) {
            if (is_name() && name == "operator") name += ' ';
            name += token();
            ++at_;
        }
        return name;
    }

    /// Reads a function from its parameters on.
    void function(Class in, std::string name) {
        const auto declared = [&](bool overrides) {
            if (!in) return;
            in->functions.push_back(name);
            if (overrides) in->overrides.push_back(name);
        };
        bool overrides = false;
        skip_brackets();
        for (;;) {
            if (at_end() || is("}")) fail("function without end");
            if (skip_attribute()) continue;
            if (take(";")) return declared(overrides);
            if (is("=")) {
                if (token(1) != "default" && token(1) != "delete") declared(overrides);
                return skip_past_semicolon();
            }
            if (is(":")) initializers();
            if (is("{")) {
                skip_brackets();
                return declared(overrides);
            }
            if (take("requires")) {
                skip_constraint();
                continue;
            }
            overrides = overrides || is("override") || is("final");
            is("<") ? skip_angles() : skip_one();
        }
    }

    /// Skips the initializers of a constructor, up to its body.
    void initializers() {
        do {
            ++at_;
            qualified_name();
            skip_brackets();
            while (take(".")) {
            }
        } while (is(","));
    }

    /// Reads what follows `class`: a definition, or nothing if it is only a name.
    void class_head(const std::string& prefix) {
        while (skip_attribute()) {
        }
        const std::size_t start = at_;
        ClassMembers found;
        found.line = tokens_[at_].line;
        const std::string own = qualified_name();
        found.name = prefix + (own.empty() ? "(unnamed)" : own);
        take("final");
        if (is(":")) {
            bases(found);
        }
        if (!is("{")) {
            at_ = start;
            qualified_name();
            return;
        }
        braced_scope(found.name + "::", &found);
        classes_.push_back(std::move(found));
    }

    void bases(ClassMembers& derived) {
        do {
            ++at_;
            while (is("public") || is("private") || is("protected") || is("virtual")) ++at_;
            derived.bases.push_back(qualified_name());
            while (take(".")) {
            }
        } while (is(","));
    }

    std::vector<Token> tokens_;
    std::size_t at_ = 0;
    std::vector<ClassMembers> classes_;
};

}  // namespace

std::vector<ClassMembers> classes_in(std::string_view text) {
    return Parser(Lexer(text).run()).run();
}

}  // namespace tensorpool::architecture
