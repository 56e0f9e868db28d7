#include <tensorpool/arena_options.hpp>

#include "arena/arena_state.hpp"
#include "platform/environment.hpp"

namespace tensorpool {

detail::ArenaDefaults arena::defaults_from_environment() {
    using platform::Named;
    detail::ArenaDefaults defaults;
    platform::read_bytes("TENSORPOOL_ARENA_INITIAL_CAPACITY", defaults.initial_capacity);
    platform::read_bytes("TENSORPOOL_ARENA_MAX_CAPACITY", defaults.max_capacity);
    platform::read_bytes_above_0("TENSORPOOL_ARENA_MAX_ALLOCATION", defaults.max_allocation);
    using Preset = GrowthPolicy (*)() noexcept;
    static constexpr Named<Preset> presets[] = {{"conservative", GrowthPolicy::conservative},
                                                {"doubling", GrowthPolicy::doubling},
                                                {"aggressive", GrowthPolicy::aggressive}};
    Preset preset = GrowthPolicy::conservative;
    platform::read("TENSORPOOL_ARENA_GROWTH", preset, "conservative, doubling or aggressive",
                   "conservative",
                   [](std::string_view text) { return platform::parse_choice(text, presets); });
    defaults.growth = preset();
    platform::read_bytes("TENSORPOOL_ARENA_GROWTH_STEP", defaults.growth.step);
    platform::read_number("TENSORPOOL_ARENA_GROWTH_FACTOR", defaults.growth.factor, 1024,
                          "a number from 0 to 1024");
    platform::read_number("TENSORPOOL_ARENA_GROWTH_FRACTION", defaults.growth.fraction, 1,
                          "a number from 0 to 1");
    platform::read_bytes("TENSORPOOL_ARENA_RETAIN", defaults.retain);
    return defaults;
}

// The first thread to finish decides. Threads do not wait for each other: a child forked at that
// moment would wait forever.
const detail::ArenaDefaults& detail::arena_defaults() {
    static constinit std::atomic<const ArenaDefaults*> decided = nullptr;
    const ArenaDefaults* known = decided.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    auto made = std::make_unique<ArenaDefaults>(arena::defaults_from_environment());
    const bool is_first = decided.compare_exchange_strong(
        known, made.get(), std::memory_order_acq_rel, std::memory_order_acquire);
    return is_first ? *made.release() : *known;
}

}  // namespace tensorpool

namespace tensorpool::arena {

void validate(const ArenaOptions& options) {
    const std::string owner = "arena '" + options.name + "'";
    if (!std::has_single_bit(options.alignment)) {
        throw std::invalid_argument("tensorpool: " + owner + ": alignment is " +
                                    std::to_string(options.alignment) +
                                    " B; expected a power of two");
    }
    if (options.max_allocation == 0) {
        throw std::invalid_argument("tensorpool: " + owner +
                                    ": max_allocation is 0 B; expected at least 1 B");
    }
    tensorpool::validate(options.growth, owner);
}

}  // namespace tensorpool::arena
