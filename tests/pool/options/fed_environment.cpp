#include "pool/options/fed_environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arena/arena_state.hpp"
#include "events/misuse.hpp"
#include "events/report_at_exit.hpp"
#include "interpose/minimum.hpp"
#include "platform/platform.hpp"
#include "pool/pool.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/segment/segment_memory.hpp"

namespace tensorpool::testing {
namespace {

std::string* captured = nullptr;  // where writes to stderr go; null: to stderr

}  // namespace

// The linker leads every call of `write` here.
extern "C" ssize_t __real_write(int file, const void* bytes, std::size_t count);
extern "C" ssize_t __wrap_write(int file, const void* bytes, std::size_t count) {
    if (file != STDERR_FILENO || captured == nullptr) return __real_write(file, bytes, count);
    captured->append(static_cast<const char*>(bytes), count);
    return static_cast<ssize_t>(count);
}

namespace {

using Text = std::string_view;

enum class Verdict { invalid, valid, either };

Verdict verdict(bool is_valid) {
    return is_valid ? Verdict::valid : Verdict::invalid;
}

Verdict choice(Text text, std::initializer_list<Text> names) {
    return verdict(std::find(names.begin(), names.end(), text) != names.end());
}

/// A number from 0 to below or up to `limit`, in decimal notation.
Verdict number(const std::string& text, double limit, bool may_reach_limit) {
    if (text.empty() || (std::strchr("0123456789.-", text[0]) == nullptr)) return Verdict::invalid;
    if (text.find_first_of("xX") != text.npos) return Verdict::invalid;
    char* end = nullptr;
    errno = 0;
    const double value = std::strtod(text.c_str(), &end);
    if (end != text.c_str() + text.size() || std::isnan(value)) return Verdict::invalid;
    // Whether a number too small for its type is 0 or invalid is left open.
    if (errno == ERANGE && std::abs(value) < 1) return Verdict::either;
    return verdict(value >= 0 && (may_reach_limit ? value <= limit : value < limit));
}

Verdict bytes(const std::string& text, double at_least = 0) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
    const std::string unit = text.substr(digits);
    const std::array<Text, 6> units{"", "B", "KiB", "MiB", "GiB", "TiB"};
    const auto found = std::find(units.begin(), units.end(), unit);
    if (found == units.end()) return Verdict::invalid;
    const double scale = std::pow(1024, std::max<std::ptrdiff_t>(found - units.begin() - 1, 0));
    const Verdict is = number(text.substr(0, digits), 0x1p63 / scale, false);
    if (is != Verdict::valid || at_least == 0) return is;
    return verdict(std::strtod(text.c_str(), nullptr) * scale >= at_least);
}

Verdict any_bytes(const std::string& text) {
    return bytes(text);
}
Verdict bytes_above_0(const std::string& text) {
    const Verdict is = bytes(text, 1);
    return is == Verdict::either ? Verdict::invalid : is;
}
Verdict up_to_1024(const std::string& text) {
    return number(text, 1024, true);
}
Verdict up_to_1(const std::string& text) {
    return number(text, 1, true);
}

Verdict whole_number(const std::string& text, double limit) {
    if (text.empty() || text.find_first_not_of("0123456789") != text.npos) return Verdict::invalid;
    return verdict(std::strtod(text.c_str(), nullptr) < limit);
}

struct Variable {
    const char* name;
    Verdict (*judge)(const std::string& text);
};

constexpr Variable variables[] = {
    {"TENSORPOOL_INITIAL_CAPACITY", any_bytes},
    {"TENSORPOOL_MAX_CAPACITY", any_bytes},
    {"TENSORPOOL_MAX_ALLOCATION", bytes_above_0},
    {"TENSORPOOL_GROWTH_STEP", any_bytes},
    {"TENSORPOOL_GROWTH_FACTOR", up_to_1024},
    {"TENSORPOOL_GROWTH_FRACTION", up_to_1},
    {"TENSORPOOL_RETAIN_BYTES", any_bytes},
    {"TENSORPOOL_RETAIN_MS", [](const std::string& text) { return whole_number(text, 0x1p32); }},
    {"TENSORPOOL_RETAIN_BACKGROUND",
     [](const std::string& text) {
         return choice(text, {"off", "auto", "on"});
     }},
    {"TENSORPOOL_HUGE_PAGES",
     [](const std::string& text) {
         return choice(text, {"never", "buckets", "auto", "always"});
     }},
    {"TENSORPOOL_NUMA",
     [](const std::string& text) {
         const bool is_word = text == "system" || text == "interleave";
         return is_word ? Verdict::valid : whole_number(text, platform::numa_node_count());
     }},
    {"TENSORPOOL_CHECKS",
     [](const std::string& text) {
         return choice(text, {"off", "basic", "full", "sampled", "hardened"});
     }},
    {"TENSORPOOL_GUARD_SHARE", up_to_1},
    {"TENSORPOOL_QUARANTINE_BYTES", any_bytes},
    {"TENSORPOOL_ARENA_INITIAL_CAPACITY", any_bytes},
    {"TENSORPOOL_ARENA_MAX_CAPACITY", any_bytes},
    {"TENSORPOOL_ARENA_MAX_ALLOCATION", bytes_above_0},
    {"TENSORPOOL_ARENA_GROWTH",
     [](const std::string& text) {
         return choice(text, {"conservative", "doubling", "aggressive"});
     }},
    {"TENSORPOOL_ARENA_GROWTH_STEP", any_bytes},
    {"TENSORPOOL_ARENA_GROWTH_FACTOR", up_to_1024},
    {"TENSORPOOL_ARENA_GROWTH_FRACTION", up_to_1},
    {"TENSORPOOL_ARENA_RETAIN", any_bytes},
    {"TENSORPOOL_REPORT",
     [](const std::string& text) {
         return choice(text, {"", "0", "1"});
     }},
    {"TENSORPOOL_INTERPOSE_MIN", bytes_above_0},
    {"TENSORPOOL_ON_MISUSE",
     [](const std::string& text) {
         return choice(text, {"stop", "report"});
     }},
    {"TENSORPOOL_STATISTICS",
     [](const std::string& text) {
         return choice(text, {"", "on", "off"});
     }},
    // Without a folder that exists, only an empty text is valid.
    {"TENSORPOOL_STATISTICS_DIR", [](const std::string& text) { return verdict(text.empty()); }},
};
constexpr std::size_t count = std::size(variables);
constexpr std::size_t statistics_mode = count - 2;
constexpr std::size_t statistics_folder = count - 1;
static_assert(Text(variables[statistics_mode].name) == "TENSORPOOL_STATISTICS");

/// The variables that are set, as "NAME=text"; an empty string is one that is not.
using Settings = std::array<std::string, count>;

Settings settings_from(std::span<const std::uint8_t> rest) {
    Settings settings;
    while (!rest.empty()) {
        const std::size_t number = rest[0] % count;
        const auto end = std::find(rest.begin() + 1, rest.end(), 0);
        std::string text(rest.begin() + 1, end);
        // Such a folder does not exist, so no file is created in one.
        if (number == statistics_folder && text.starts_with('/')) text.insert(0, "/not/a/folder");
        settings[number] = variables[number].name + ("=" + text);
        rest = rest.subspan(static_cast<std::size_t>(end - rest.begin()));
        if (!rest.empty()) rest = rest.subspan(1);
    }
    return settings;
}

std::string text_of(const std::string& setting) {
    return setting.substr(setting.find('=') + 1);
}

/// What the readers return and print.
struct Readings {
    std::vector<double> values;
    std::string reported;
};

// `setenv` would keep every text that was ever set.
class Environment {
public:
    explicit Environment(Settings& settings) {
        for (std::string& setting : settings) {
            if (!setting.empty()) entries_[used_++] = setting.data();
        }
        environ = entries_.data();
    }
    ~Environment() { environ = before_; }
    Environment(const Environment&) = delete;
    Environment& operator=(const Environment&) = delete;

private:
    char** before_ = environ;
    std::array<char*, count + 1> entries_ = {};
    std::size_t used_ = 0;
};

void add(std::vector<double>& values, const PoolOptions& pool) {
    for (const std::size_t size :
         {pool.initial_capacity, pool.max_capacity, pool.max_allocation, pool.growth.step,
          pool.retain.bytes, pool.quarantine_bytes, std::size_t{pool.retain.milliseconds},
          std::size_t{pool.numa.node}, static_cast<std::size_t>(pool.retain.background),
          static_cast<std::size_t>(pool.huge_pages), static_cast<std::size_t>(pool.checks),
          static_cast<std::size_t>(pool.numa.placement)}) {
        values.push_back(static_cast<double>(size));
    }
    values.insert(values.end(), {pool.growth.factor, pool.growth.fraction, pool.guard_share});
}

void add(std::vector<double>& values, const detail::ArenaDefaults& arena) {
    for (const std::size_t size : {arena.initial_capacity, arena.max_capacity, arena.max_allocation,
                                   arena.growth.step, arena.retain}) {
        values.push_back(static_cast<double>(size));
    }
    values.insert(values.end(), {arena.growth.factor, arena.growth.fraction});
}

/// Reads what decides where the statistics lie, and gets the memory for them.
void read_statistics(std::vector<double>& values) {
    statistics::SegmentMemory provider;
    const platform::SharedMemory memory = provider.get();
    if (memory.address == nullptr) throw std::runtime_error("no memory for statistics");
    values.push_back(memory.file < 0 ? 1 : 0);
    platform::unmap(memory.address, statistics::segment_bytes);
    platform::close_shared_memory(memory);
}

Readings read(Settings& settings) {
    Readings readings;
    const Environment environment(settings);
    captured = &readings.reported;
    add(readings.values, options_from_environment({}));
    add(readings.values, arena::defaults_from_environment());
    readings.values.push_back(events::report_wanted_by_environment() ? 1 : 0);
    readings.values.push_back(static_cast<double>(interpose::minimum_from_environment()));
    // Memory for statistics takes longer than everything else, so most inputs do without.
    if (!settings[statistics_mode].empty() || !settings[statistics_folder].empty()) {
        read_statistics(readings.values);
    } else {
        statistics::check_other_settings();
    }
    captured = nullptr;
    return readings;
}

[[noreturn]] void fail(const std::string& problem, const std::string& setting) {
    throw std::logic_error(problem + ": " + setting);
}

/// Returns the number of lines that report each variable. Every line must report one.
std::array<unsigned, count> reports_in(Text reported) {
    std::array<unsigned, count> reports = {};
    constexpr Text head = "tensorpool: ";
    while (!reported.empty()) {
        const Text line = reported.substr(0, reported.find('\n'));
        if (line.size() == reported.size()) fail("a line has no end", std::string(line));
        const auto is_control = [](char c) { return (c >= 0 && c < ' ') || c == 0x7f; };
        if (std::any_of(line.begin(), line.end(), is_control) || !line.starts_with(head)) {
            fail("not a line of text", std::string(line));
        }
        const Text name = line.substr(head.size(), line.find(' ', head.size()) - head.size());
        const auto found = std::find_if(std::begin(variables), std::end(variables),
                                        [&](const Variable& one) { return name == one.name; });
        if (found == std::end(variables)) fail("a line about no variable", std::string(line));
        ++reports[static_cast<std::size_t>(found - variables)];
        reported.remove_prefix(line.size() + 1);
    }
    return reports;
}

bool is_read(std::size_t number, const Settings& settings) {
    return number != statistics_folder || text_of(settings[statistics_mode]) != "off";
}

}  // namespace

void feed_environment(std::span<const std::uint8_t> bytes) {
    Settings settings = settings_from(bytes);
    const Readings with_all = read(settings);
    const std::array<unsigned, count> reports = reports_in(with_all.reported);
    for (std::size_t i = 0; i < count; ++i) {
        const bool is_set = !settings[i].empty();
        const Verdict is = is_set && is_read(i, settings) ? variables[i].judge(text_of(settings[i]))
                                                          : Verdict::valid;
        if (reports[i] > 1) fail("reported twice", settings[i]);
        if (reports[i] == 0 && is == Verdict::invalid) fail("not reported", settings[i]);
        if (reports[i] == 1 && is == Verdict::valid) fail("reported but valid", settings[i]);
        if (reports[i] == 0) continue;
        // An empty mode and none are equal, and the number of readings stays.
        settings[i] = i >= statistics_mode ? variables[i].name + std::string("=") : "";
    }
    const Readings with_valid = read(settings);
    if (!with_valid.reported.empty()) fail("reported at the second time", with_valid.reported);
    if (with_valid.values != with_all.values) fail("an invalid text was used", with_all.reported);
}

}  // namespace tensorpool::testing
