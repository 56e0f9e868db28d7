#include "pool/pool.hpp"

namespace tensorpool {

void validate(const PoolOptions& options) {
    const std::string owner = "pool '" + options.name + "'";
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("tensorpool: " + owner + ": " + what);
    };
    const auto is = [](auto value) { return " is " + std::to_string(value); };
    if (options.max_capacity != 0 && options.initial_capacity > options.max_capacity) {
        refuse("initial_capacity" + is(options.initial_capacity) + " B, more than max_capacity, " +
               std::to_string(options.max_capacity) + " B");
    }
    if (options.max_allocation == 0) refuse("max_allocation is 0 B; expected at least 1 B");
    validate(options.growth, owner);
    if (!(options.guard_share >= 0 && options.guard_share <= 1)) {
        refuse("guard_share" + is(options.guard_share) + "; expected a number from 0 to 1");
    }
    if (options.numa.placement != NumaPolicy::Placement::prefer) return;
    const unsigned nodes = platform::numa_node_count();  // reads a file of the system
    if (options.numa.node >= nodes) {
        refuse("numa.node" + is(options.numa.node) + "; expected less than " +
               std::to_string(nodes) + ", the nodes of this machine");
    }
}

namespace {

using platform::Named;
using platform::parse_choice;
using platform::parse_number;
using platform::read;
using platform::read_bytes;
using platform::read_bytes_above_0;
using platform::read_number;
using Text = std::string_view;

std::optional<NumaPolicy> parse_numa(Text text) {
    using Placement = NumaPolicy::Placement;
    if (text == "system") return NumaPolicy{};
    if (text == "interleave") return NumaPolicy{.placement = Placement::interleave};
    const std::optional<unsigned> node = parse_number<unsigned>(text);
    if (!node || *node >= platform::numa_node_count()) return std::nullopt;
    return NumaPolicy{.placement = Placement::prefer, .node = *node};
}

constexpr const char* background_variable = "TENSORPOOL_RETAIN_BACKGROUND";
constexpr Named<BackgroundTrim> background[] = {
    {"off", BackgroundTrim::off}, {"auto", BackgroundTrim::automatic}, {"on", BackgroundTrim::on}};

}  // namespace

BackgroundTrim background_trim_from_environment() noexcept {
    const char* const text = platform::environment_variable(background_variable);
    if (text == nullptr) return BackgroundTrim::off;
    return parse_choice(Text(text), background).value_or(BackgroundTrim::off);
}

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
    read(background_variable, options.retain.background, "off, auto or on", "off",
         [](Text text) { return parse_choice(text, background); });
    static constexpr Named<HugePages> huge_pages[] = {{"never", HugePages::never},
                                                      {"buckets", HugePages::buckets},
                                                      {"auto", HugePages::automatic},
                                                      {"always", HugePages::always}};
    read("TENSORPOOL_HUGE_PAGES", options.huge_pages, "never, buckets, auto or always", "buckets",
         [](Text text) { return parse_choice(text, huge_pages); });
    read("TENSORPOOL_NUMA", options.numa, "system, interleave or the number of a node", "system",
         parse_numa);
    static constexpr Named<Checks> checks[] = {{"off", Checks::off},
                                               {"basic", Checks::basic},
                                               {"full", Checks::full},
                                               {"sampled", Checks::sampled},
                                               {"hardened", Checks::hardened}};
    read("TENSORPOOL_CHECKS", options.checks, "off, basic, full, sampled or hardened",
         options.checks == Checks::off ? "off" : "basic",
         [](Text text) { return parse_choice(text, checks); });
    read_number("TENSORPOOL_GUARD_SHARE", options.guard_share, 1, "a number from 0 to 1");
    read_bytes("TENSORPOOL_QUARANTINE_BYTES", options.quarantine_bytes);
    return options;
}

}  // namespace tensorpool
