#include "profile/interval.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include <tensorpool/profile_request.hpp>

#include "common/printable.hpp"
#include "common/settings.hpp"
#include "common/units.hpp"
#include "run/size_text.hpp"

namespace tensorpool::command::profile {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t least = 1024;
constexpr auto patience = 3s;
constexpr auto between_looks = 2ms;

std::string text_of(std::uint64_t interval) {
    if (interval == 0) return "samples no allocation";
    if (interval == 1) return "samples every allocation";
    return fmt::format("samples one allocation in {} on average", format_size(interval));
}

}  // namespace

std::optional<std::uint64_t> parse_interval(std::string_view text) {
    if (text == "off") return 0;
    if (text == "all") return 1;
    const auto bytes = run::parse_size(text);
    return bytes && *bytes >= least ? bytes : std::nullopt;
}

std::string problem_of_interval(const std::string& text) {
    if (parse_interval(text)) return "";
    return fmt::format("found '{}'; expected off, all, or a size from 1KiB on, such as 64KiB",
                       printable(text));
}

std::string change_interval(StatisticsReader& process, std::uint64_t bytes) {
    request_profile_interval(process.process(), bytes);
    const auto begin = Clock::now();
    std::uint64_t found = process.heap_profile().interval;
    while (found != bytes && process.is_running() && Clock::now() - begin < patience) {
        std::this_thread::sleep_for(between_looks);
        found = process.heap_profile().interval;
    }
    if (found == bytes) return fmt::format("process {} {} now", process.process(), text_of(bytes));
    throw CommandError(
        finding, fmt::format("process {} still {}: none of its threads took a slow path of a pool, "
                             "for example for a large block; it will change when one does",
                             process.process(), text_of(found)));
}

}  // namespace tensorpool::command::profile
