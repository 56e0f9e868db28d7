#include <fmt/format.h>

#include <algorithm>

#include "common/printable.hpp"
#include "common/settings.hpp"
#include "replay/replay_allocators.hpp"

namespace tensorpool::command::replay {
namespace {

struct PoolOption {
    const char* name;
    const char* variable;  // read by the global pool: see <tensorpool/pool_options.hpp>
};

constexpr PoolOption pool_options[] = {
    {"initial_capacity", "TENSORPOOL_INITIAL_CAPACITY"},
    {"max_capacity", "TENSORPOOL_MAX_CAPACITY"},
    {"max_allocation", "TENSORPOOL_MAX_ALLOCATION"},
    {"growth_step", "TENSORPOOL_GROWTH_STEP"},
    {"growth_factor", "TENSORPOOL_GROWTH_FACTOR"},
    {"growth_fraction", "TENSORPOOL_GROWTH_FRACTION"},
    {"retain", "TENSORPOOL_RETAIN_BYTES"},
    {"retain_ms", "TENSORPOOL_RETAIN_MS"},
    {"retain_background", "TENSORPOOL_RETAIN_BACKGROUND"},
    {"huge_pages", "TENSORPOOL_HUGE_PAGES"},
    {"numa", "TENSORPOOL_NUMA"},
    {"checks", "TENSORPOOL_CHECKS"},
};

}  // namespace

std::string option_names() {
    std::string names;
    for (const PoolOption& option : pool_options) names += fmt::format(", {}", option.name);
    return names.substr(2);
}

Variables pool_variables(std::span<const std::string> options) {
    Variables variables;
    for (const std::string& option : options) {
        const std::size_t equals = option.find('=');
        const std::string name = option.substr(0, equals);
        const auto* const found = std::ranges::find(pool_options, name, &PoolOption::name);
        if (equals == std::string::npos || found == std::end(pool_options)) {
            throw CommandError(wrong_usage,
                               fmt::format("{} is not an option of the pool, NAME=VALUE; there "
                                           "are {}",
                                           printable(option), option_names()));
        }
        variables.emplace_back(found->variable, option.substr(equals + 1));
    }
    return variables;
}

}  // namespace tensorpool::command::replay
