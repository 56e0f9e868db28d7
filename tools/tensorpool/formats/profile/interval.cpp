#include "formats/profile/formats.hpp"

#include <fmt/format.h>

#include <tensorpool/profile_request.hpp>

#include "common/settings.hpp"
#include "common/target.hpp"

namespace tensorpool::command::profile {
namespace {

constexpr std::uint64_t least = 1024;
constexpr std::uint64_t largest = std::uint64_t{1} << 40;  // see set_profile_interval
constexpr std::uint64_t usual = std::uint64_t{512} << 10;  // TENSORPOOL_PROFILE=on
constexpr std::chrono::seconds patience{3};

std::string text_of(std::uint64_t interval) {
    if (interval == 0) return "samples no allocation";
    if (interval == 1) return "samples every allocation";
    return fmt::format("samples one allocation in {} on average", format_size(interval));
}

}  // namespace

std::optional<std::uint64_t> parse_interval(std::string_view text) {
    if (text == "off") return 0;
    if (text == "all") return 1;
    const auto bytes = parse_size(text);
    return bytes && *bytes >= least && *bytes <= largest ? bytes : std::nullopt;
}

std::string problem_of_interval(const std::string& text) {
    if (parse_interval(text)) return "";
    return fmt::format("found '{}'; expected off, all, or a size from 1KiB to 1TiB, such as 64KiB",
                       printable(text));
}

std::string change_interval(StatisticsReader& process, std::uint64_t bytes) {
    request_profile_interval(process.process(), bytes);
    std::uint64_t found = 0;
    const bool has_changed = wait_for_answer(process, patience, [&] {
        found = process.heap_profile().interval;
        return found == bytes;
    });
    if (has_changed) return fmt::format("process {} {} now", process.process(), text_of(bytes));
    throw CommandError(
        finding, fmt::format("process {} still {}: none of its threads took a slow path of a pool, "
                             "for example for a large block; it will change when one does",
                             process.process(), text_of(found)));
}

std::string turn_on(StatisticsReader& process) {
    return fmt::format(
        "sampling was off; {}, each thread within its next 64 MiB of allocations; what it "
        "allocated before is unknown",
        change_interval(process, usual));
}

}  // namespace tensorpool::command::profile
