#include "stress/pools.hpp"

namespace tensorpool::stress {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void expect(const PoolUnderStress& under_stress, const char* what, std::uint64_t value,
            std::uint64_t expected) {
    if (value == expected) return;
    found("pool '%s': %s is %zu, not %zu", under_stress.options.name.c_str(), what,
          std::size_t{value}, std::size_t{expected});
}

}  // namespace

Pools make_pools(std::string_view plant) {
    const auto options = [](const char* name, Checks checks) {
        PoolOptions made;
        made.name = name;
        made.checks = checks;
        return made;
    };
    PoolOptions small = options("small", Checks::off);
    small.max_capacity = 6 * mib;
    PoolOptions prompt = options("prompt", Checks::off);
    prompt.retain.milliseconds = 0;
    const auto make = [&](const PoolOptions& its_options, std::size_t largest_bytes) {
        return std::make_unique<PoolUnderStress>(its_options, largest_bytes, plant);
    };
    return {make(options("plain", Checks::off), 8 * mib), make(small, 2 * mib),
            make(prompt, 8 * mib), make(options("checked", Checks::basic), 8 * mib)};
}

void check_that_nothing_is_left(PoolUnderStress& under_stress) {
    under_stress.pool.trim();
    const PoolStatistics is = under_stress.pool.statistics();
    const Totals& totals = under_stress.totals;
    expect(under_stress, "in use", is.in_use_bytes, 0);
    expect(under_stress, "parked", is.parked_bytes, 0);
    expect(under_stress, "cached", is.cached_bytes, 0);
    expect(under_stress, "free", is.free_bytes, 0);
    expect(under_stress, "lost", is.lost_bytes, 0);
    expect(under_stress, "capacity", is.capacity_bytes, 0);
    expect(under_stress, "allocations", is.allocations, totals.allocations);
    expect(under_stress, "deallocations", is.deallocations, totals.deallocations);
    expect(under_stress, "blocks in use", is.allocations - is.deallocations, 0);
    expect(under_stress, "requested", is.requested_bytes, totals.requested);
    expect(under_stress, "failures", is.failures, totals.failures);
    expect(under_stress, "get_total_allocated", under_stress.pool.get_total_allocated(), 0);
    if (is.requested_bytes > is.allocated_bytes) {
        found("pool '%s': requested bytes exceed allocated bytes",
              under_stress.options.name.c_str());
    }
    for (const BucketStatistics& bucket : is.buckets) {
        expect(under_stress, "a bucket's bytes in use", bucket.in_use_bytes, 0);
        expect(under_stress, "a bucket's blocks in use", bucket.allocations, bucket.deallocations);
        expect(under_stress, "a bucket's capacity", bucket.capacity_bytes, 0);
    }
    expect(under_stress, "large blocks in use", is.large.allocations, is.large.deallocations);
}

}  // namespace tensorpool::stress
