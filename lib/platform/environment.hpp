#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "platform/platform.hpp"

/// Functions that read environment variables into options. An invalid value is reported on stderr
/// with the variable's name, what was expected and what is used instead. The option is then left
/// unchanged.
namespace tensorpool::platform {

/// Parses the whole of `text` as a number. Returns nullopt if it is not a number or does not fit in
/// `Number`.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// Parses a number followed by an optional unit of powers of 1024: "64", "64B", "1.5GiB".
std::optional<std::size_t> parse_bytes(std::string_view text);

/// A value that a variable may hold, and the choice that it stands for.
template <class Choice>
struct Named {
    std::string_view name;
    Choice choice;
};

template <class Choice, std::size_t count>
std::optional<Choice> parse_choice(std::string_view text, const Named<Choice> (&choices)[count]) {
    for (const auto& [name, choice] : choices) {
        if (text == name) return choice;
    }
    return std::nullopt;
}

/// Reads one variable into `option` with `parse`, which takes a string_view and returns an
/// optional. If `parse` returns nullopt, the value is reported, with `used` as what is used
/// instead. A variable that is not set changes nothing.
template <class Option, class Parse>
void read(const char* variable, Option& option, const char* expected, const std::string& used,
          Parse parse) {
    const char* const text = environment_variable(variable);
    if (text == nullptr) return;
    if (const std::optional<Option> value = parse(std::string_view(text))) {
        option = *value;
        return;
    }
    say("%s is '%.60s'; expected %s; used instead: %s", variable, text, expected, used.c_str());
}

/// Formats an option in bytes for messages: 0 is "none", SIZE_MAX "no limit".
std::string text_of(std::size_t bytes);

/// Reads a size, which may be 0.
void read_bytes(const char* variable, std::size_t& option);
/// Reads a size of at least one byte.
void read_bytes_above_0(const char* variable, std::size_t& option);
/// Reads a number from 0 to `max`; `expected` describes this range in words.
void read_number(const char* variable, double& option, double max, const char* expected);

}  // namespace tensorpool::platform
