#include "adaptors/c_options.hpp"

#include <cstddef>
#include <stdexcept>
#include <string>

#include "adaptors/sized_struct.hpp"

namespace tensorpool::adaptors {
namespace {

constexpr std::size_t first_version_bytes =
    offsetof(tensorpool_options, on_event_user) + sizeof(tensorpool_options::on_event_user);

static_assert(static_cast<int>(HugePages::never) == tensorpool_huge_pages_never);
static_assert(static_cast<int>(HugePages::buckets) == tensorpool_huge_pages_buckets);
static_assert(static_cast<int>(HugePages::automatic) == tensorpool_huge_pages_automatic);
static_assert(static_cast<int>(HugePages::always) == tensorpool_huge_pages_always);
static_assert(static_cast<int>(NumaPolicy::Placement::system) == tensorpool_numa_system);
static_assert(static_cast<int>(NumaPolicy::Placement::prefer) == tensorpool_numa_prefer);
static_assert(static_cast<int>(NumaPolicy::Placement::interleave) == tensorpool_numa_interleave);
static_assert(static_cast<int>(Checks::off) == tensorpool_checks_off);
static_assert(static_cast<int>(Checks::basic) == tensorpool_checks_basic);
static_assert(static_cast<int>(Checks::full) == tensorpool_checks_full);
static_assert(static_cast<int>(Checks::sampled) == tensorpool_checks_sampled);
static_assert(static_cast<int>(Checks::hardened) == tensorpool_checks_hardened);
static_assert(static_cast<int>(PoolEvent::Kind::growth) == tensorpool_event_growth);
static_assert(static_cast<int>(PoolEvent::Kind::give_back) == tensorpool_event_give_back);
static_assert(static_cast<int>(PoolEvent::Kind::pressure) == tensorpool_event_pressure);
static_assert(static_cast<int>(PoolEvent::Kind::failure) == tensorpool_event_failure);

tensorpool_options defaults() {
    const PoolOptions from;
    tensorpool_options to = {};
    to.struct_bytes = sizeof to;
    to.name = "pool";
    to.initial_capacity = from.initial_capacity;
    to.max_capacity = from.max_capacity;
    to.max_allocation = from.max_allocation;
    to.growth_step = from.growth.step;
    to.growth_factor = from.growth.factor;
    to.growth_fraction = from.growth.fraction;
    to.retain_bytes = from.retain.bytes;
    to.retain_milliseconds = from.retain.milliseconds;
    to.retain_background = static_cast<std::int32_t>(from.retain.background);
    to.huge_pages = static_cast<std::int32_t>(from.huge_pages);
    to.numa = static_cast<std::int32_t>(from.numa.placement);
    to.numa_node = from.numa.node;
    to.checks = static_cast<std::int32_t>(from.checks);
    to.guard_share = from.guard_share;
    to.quarantine_bytes = from.quarantine_bytes;
    return to;
}

using EventFunction = void (*)(const tensorpool_event*, void*);

std::function<void(const PoolEvent&)> to_callback(EventFunction function, void* user) {
    if (function == nullptr) return {};
    return [function, user](const PoolEvent& event) {
        const tensorpool_event reported = {.kind = static_cast<std::int32_t>(event.kind),
                                           .pool = event.pool,
                                           .bytes = event.bytes,
                                           .in_use = event.in_use,
                                           .capacity = event.capacity,
                                           .limit = event.limit};
        function(&reported, user);
    };
}

}  // namespace

void set_defaults(tensorpool_options* options, std::size_t struct_bytes) {
    set_options(options, struct_bytes, "tensorpool_options", first_version_bytes, defaults());
}

PoolOptions to_pool_options(const tensorpool_options& options) {
    const tensorpool_options from =
        known_part(options, defaults(), "tensorpool_options", first_version_bytes);
    if (from.name == nullptr) throw std::invalid_argument("name is NULL, expected a text");
    PoolOptions to;
    to.name = from.name;
    to.initial_capacity = from.initial_capacity;
    to.max_capacity = from.max_capacity;
    to.max_allocation = from.max_allocation;
    to.growth = {
        .step = from.growth_step, .factor = from.growth_factor, .fraction = from.growth_fraction};
    to.retain = {.bytes = from.retain_bytes,
                 .milliseconds = from.retain_milliseconds,
                 .background = to_enumeration("retain_background", from.retain_background,
                                              BackgroundTrim::on)};
    to.huge_pages = to_enumeration("huge_pages", from.huge_pages, HugePages::always);
    to.numa = {.placement = to_enumeration("numa", from.numa, NumaPolicy::Placement::interleave),
               .node = from.numa_node};
    to.checks = to_enumeration("checks", from.checks, Checks::hardened);
    to.guard_share = from.guard_share;
    to.quarantine_bytes = from.quarantine_bytes;
    to.on_event = to_callback(from.on_event, from.on_event_user);
    return to;
}

}  // namespace tensorpool::adaptors
