#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "platform/fail.hpp"
#include "platform/platform.hpp"

/// Readers of environment variables into options. A value that makes no sense is told on stderr
/// with the variable's name, what was expected and what is used instead, and changes nothing.
namespace tensorpool::platform {

/// The whole of `text` as a number; nullopt where it is none, or none that `Number` can hold.
template <class Number>
std::optional<Number> parse_number(std::string_view text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

/// "64", "64B", "1.5GiB": a number, then a unit of 1024.
std::optional<std::size_t> parse_bytes(std::string_view text);

/// A word that a variable may hold, and what it stands for.
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

/// Reads one variable into `option` by `parse`, which takes a string_view and returns an optional;
/// `used` tells what stays when that is empty. A variable that is not set changes nothing.
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

/// How messages tell an option of bytes: 0 is "none", SIZE_MAX "no limit".
std::string text_of(std::size_t bytes);

/// Any size.
void read_bytes(const char* variable, std::size_t& option);
/// Any size of at least one byte.
void read_bytes_above_0(const char* variable, std::size_t& option);
/// A number from 0 to `most`, which is what `expected` says in words.
void read_number(const char* variable, double& option, double most, const char* expected);

}  // namespace tensorpool::platform
