#include "pool/environment_options.hpp"

#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "platform/fail.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using Text = std::string_view;

template <class Number>
std::optional<Number> parse_number(Text text) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

// "64", "64B", "1.5GiB": a number, then a unit of 1024.
std::optional<std::size_t> parse_bytes(Text text) {
    static constexpr Text units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::optional<double> number = parse_number<double>(text.substr(0, digits));
    const Text unit = text.substr(digits);
    double scale = 1;
    bool known = unit.empty();
    for (double power = 1; const Text name : units) {
        if (unit == name) {
            scale = power;
            known = true;
        }
        power *= 1024;
    }
    if (!number || !known || *number * scale >= 0x1p63) return std::nullopt;
    return static_cast<std::size_t>(*number * scale);
}

template <class Choice>
struct Named {
    Text name;
    Choice choice;
};

template <class Choice, std::size_t count>
std::optional<Choice> parse_choice(Text text, const Named<Choice> (&choices)[count]) {
    for (const auto& [name, choice] : choices) {
        if (text == name) return choice;
    }
    return std::nullopt;
}

std::optional<NumaPolicy> parse_numa(Text text) {
    using Placement = NumaPolicy::Placement;
    if (text == "system") return NumaPolicy{};
    if (text == "interleave") return NumaPolicy{.placement = Placement::interleave};
    const std::optional<unsigned> node = parse_number<unsigned>(text);
    if (!node || *node >= platform::numa_node_count()) return std::nullopt;
    return NumaPolicy{.placement = Placement::prefer, .node = *node};
}

// Reads one variable into `option`; `used` tells what stays when it makes no sense.
template <class Option, class Parse>
void read(const char* variable, Option& option, const char* expected, const std::string& used,
          Parse parse) {
    const char* const text = platform::environment_variable(variable);
    if (text == nullptr) return;
    if (const std::optional<Option> value = parse(Text(text))) {
        option = *value;
        return;
    }
    platform::say("%s is '%.60s'; expected %s; used instead: %s", variable, text, expected,
                  used.c_str());
}

std::string text_of(std::size_t bytes) {
    if (bytes == 0) return "none";
    return bytes == SIZE_MAX ? "no limit" : base::BytesText(bytes).c_str();
}

void read_bytes(const char* variable, std::size_t& option) {
    read(variable, option, "a size such as 512MiB or 2GiB", text_of(option), parse_bytes);
}

void read_bytes_above_0(const char* variable, std::size_t& option) {
    read(variable, option, "a size above 0 such as 512MiB or 2GiB", text_of(option), [](Text text) {
        const std::optional<std::size_t> bytes = parse_bytes(text);
        return bytes != 0U ? bytes : std::nullopt;
    });
}

void read_number(const char* variable, double& option, double most, const char* expected) {
    read(variable, option, expected, std::to_string(option), [most](Text text) {
        const std::optional<double> number = parse_number<double>(text);
        return number && *number >= 0 && *number <= most ? number : std::nullopt;
    });
}

}  // namespace

PoolOptions options_from_environment(PoolOptions options) {
    read_bytes("TENSORPOOL_INITIAL_CAPACITY", options.initial_capacity);
    read_bytes("TENSORPOOL_MAX_CAPACITY", options.max_capacity);
    read_bytes_above_0("TENSORPOOL_MAX_ALLOCATION", options.max_allocation);
    read_bytes("TENSORPOOL_GROWTH_STEP", options.growth.step);
    read_number("TENSORPOOL_GROWTH_FACTOR", options.growth.factor, 1024, "a number from 0 to 1024");
    read_number("TENSORPOOL_GROWTH_FRACTION", options.growth.fraction, 1, "a number from 0 to 1");
    read_bytes("TENSORPOOL_RETAIN_BYTES", options.retain.bytes);
    read("TENSORPOOL_RETAIN_MS", options.retain.milliseconds, "a whole number of milliseconds",
         std::to_string(options.retain.milliseconds), parse_number<std::uint32_t>);
    static constexpr Named<HugePages> huge_pages[] = {{"never", HugePages::never},
                                                      {"buckets", HugePages::buckets},
                                                      {"auto", HugePages::automatic},
                                                      {"always", HugePages::always}};
    read("TENSORPOOL_HUGE_PAGES", options.huge_pages, "never, buckets, auto or always", "buckets",
         [](Text text) { return parse_choice(text, huge_pages); });
    read("TENSORPOOL_NUMA", options.numa, "system, interleave or the number of a node", "system",
         parse_numa);
    static constexpr Named<Checks> checks[] = {
        {"off", Checks::off}, {"basic", Checks::basic}, {"full", Checks::full}};
    read("TENSORPOOL_CHECKS", options.checks, "off, basic or full",
         options.checks == Checks::off ? "off" : "basic",
         [](Text text) { return parse_choice(text, checks); });
    return options;
}

bool report_wanted_by_environment() {
    bool wanted = false;
    static constexpr Named<bool> answers[] = {{"1", true}, {"0", false}, {"", false}};
    read("TENSORPOOL_REPORT", wanted, "1 or 0", "0",
         [](Text text) { return parse_choice(text, answers); });
    return wanted;
}

}  // namespace tensorpool
