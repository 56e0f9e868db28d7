#include <tensorpool/tensorpool.h>

#include "adaptors/c_calls.hpp"
#include "pool/pool.hpp"

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

/// Calls `copy` for the fields of both structs that are the same.
void for_each_option(auto copy, auto& c, auto& ours) {
    copy(c.initial_capacity, ours.initial_capacity);
    copy(c.max_capacity, ours.max_capacity);
    copy(c.max_allocation, ours.max_allocation);
    copy(c.growth_step, ours.growth.step);
    copy(c.growth_factor, ours.growth.factor);
    copy(c.growth_fraction, ours.growth.fraction);
    copy(c.retain_bytes, ours.retain.bytes);
    copy(c.retain_milliseconds, ours.retain.milliseconds);
    copy(c.retain_background, ours.retain.background, "retain_background", BackgroundTrim::on);
    copy(c.huge_pages, ours.huge_pages, "huge_pages", HugePages::always);
    copy(c.numa, ours.numa.placement, "numa", NumaPolicy::Placement::interleave);
    copy(c.numa_node, ours.numa.node);
    copy(c.checks, ours.checks, "checks", Checks::hardened);
    copy(c.guard_share, ours.guard_share);
    copy(c.quarantine_bytes, ours.quarantine_bytes);
}

tensorpool_options defaults() {
    const PoolOptions from;
    tensorpool_options to = {};
    to.struct_bytes = sizeof to;
    to.name = "pool";
    for_each_option(ToC(), to, from);
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

/// Converts the options of the C interface. Throws std::invalid_argument for a size that is not
/// that of any version of the struct, for a value outside its enumeration, and for a set field that
/// this version does not know.
PoolOptions to_pool_options(const tensorpool_options& options) {
    const tensorpool_options from =
        known_part(options, defaults(), "tensorpool_options", first_version_bytes);
    if (from.name == nullptr) throw std::invalid_argument("name is NULL, expected a text");
    PoolOptions to;
    to.name = from.name;
    for_each_option(FromC(), from, to);
    to.on_event = to_callback(from.on_event, from.on_event_user);
    return to;
}

// A tensorpool_pool is a MemoryPool. The type is incomplete for callers in C.
auto& to_pool(auto* pool) {
    return object_of<MemoryPool>(pool, "pool", "one from tensorpool_create or tensorpool_global");
}
tensorpool_pool* to_handle(MemoryPool* pool) noexcept {
    return reinterpret_cast<tensorpool_pool*>(pool);
}

MemoryPool* create(const tensorpool_options* options) {
    return options == nullptr ? new MemoryPool() : new MemoryPool(to_pool_options(*options));
}

constexpr std::size_t first_statistics_bytes =
    offsetof(tensorpool_statistics, give_backs) + sizeof(tensorpool_statistics::give_backs);

tensorpool_statistics headline(const PoolStatistics& from) {
    return {.struct_bytes = sizeof(tensorpool_statistics),
            .in_use_bytes = from.in_use_bytes,
            .capacity_bytes = from.capacity_bytes,
            .reserved_bytes = from.reserved_bytes,
            .limit_bytes = from.limit_bytes,
            .peak_in_use_bytes = from.peak_in_use_bytes,
            .peak_capacity_bytes = from.peak_capacity_bytes,
            .peak_reserved_bytes = from.peak_reserved_bytes,
            .requested_bytes = from.requested_bytes,
            .allocated_bytes = from.allocated_bytes,
            .allocations = from.allocations,
            .deallocations = from.deallocations,
            .cache_hits = from.cache_hits,
            .cache_misses = from.cache_misses,
            .failures = from.failures,
            .parked_bytes = from.parked_bytes,
            .cached_bytes = from.cached_bytes,
            .free_bytes = from.free_bytes,
            .record_bytes = from.record_bytes,
            .growths = from.growths,
            .give_backs = from.give_backs};
}

}  // namespace
}  // namespace tensorpool::adaptors

using namespace tensorpool::adaptors;

const char* tensorpool_version() {
    return TENSORPOOL_VERSION;
}

const char* tensorpool_last_error() {
    return last_error();
}

tensorpool_status tensorpool_options_init(tensorpool_options* options, size_t struct_bytes) {
    return guarded([&] {
        set_options(options, struct_bytes, "tensorpool_options", first_version_bytes, defaults());
    });
}

tensorpool_pool* tensorpool_create(const tensorpool_options* options) {
    return to_handle(or_zero([&] { return create(options); }));
}

tensorpool_status tensorpool_destroy(tensorpool_pool* pool) {
    if (pool == nullptr) return tensorpool_ok;
    return guarded([&] {
        if (pool == tensorpool_global()) {
            throw std::invalid_argument(
                "pool is the global pool, expected one from tensorpool_create");
        }
        delete &to_pool(pool);
    });
}

tensorpool_pool* tensorpool_global() {
    return to_handle(&tensorpool::get_global_memory_pool());
}

void* tensorpool_allocate(tensorpool_pool* pool, size_t bytes) {
    return or_zero([&] { return to_pool(pool).allocate(bytes); });
}

void* tensorpool_allocate_aligned(tensorpool_pool* pool, size_t bytes, size_t alignment) {
    return or_zero([&] { return to_pool(pool).allocate(bytes, alignment); });
}

void* tensorpool_allocate_zeroed(tensorpool_pool* pool, size_t count, size_t element_bytes) {
    return or_zero([&] { return to_pool(pool).allocate_zeroed(count, element_bytes); });
}

void* tensorpool_reallocate(tensorpool_pool* pool, void* block, size_t old_bytes,
                            size_t new_bytes) {
    return or_zero([&] { return to_pool(pool).reallocate(block, old_bytes, new_bytes); });
}

void tensorpool_deallocate(tensorpool_pool* pool, void* block) {
    if (block == nullptr) return;
    guarded([&] { to_pool(pool).deallocate(block); });
}

void tensorpool_deallocate_sized(tensorpool_pool* pool, void* block, size_t bytes) {
    if (block == nullptr) return;
    guarded([&] { to_pool(pool).deallocate(block, bytes); });
}

void tensorpool_deallocate_aligned(tensorpool_pool* pool, void* block, size_t bytes,
                                   size_t alignment) {
    if (block == nullptr) return;
    guarded([&] { to_pool(pool).deallocate(block, bytes, alignment); });
}

tensorpool_status tensorpool_reserve(tensorpool_pool* pool, size_t capacity) {
    return guarded([&] { to_pool(pool).reserve(capacity); });
}

void tensorpool_allow_background_trimmer(int32_t allowed) {
    tensorpool::allow_background_trimmer(allowed != 0);
}

size_t tensorpool_describe_fault(const void* address, char* text, size_t bytes) {
    return tensorpool::detail::describe_fault(address, text, bytes);
}

size_t tensorpool_trim(tensorpool_pool* pool) {
    return or_zero([&] { return to_pool(pool).trim(); });
}

int tensorpool_owns(const tensorpool_pool* pool, const void* address) {
    return or_zero([&] { return to_pool(pool).owns(address) ? 1 : 0; });
}

size_t tensorpool_usable_size(const tensorpool_pool* pool, const void* block) {
    return or_zero([&] { return to_pool(pool).usable_size(block); });
}

tensorpool_status tensorpool_read_statistics(const tensorpool_pool* pool,
                                             tensorpool_statistics* statistics) {
    return guarded([&] {
        fill_in(statistics, "statistics", "tensorpool_statistics", first_statistics_bytes,
                [&] { return headline(to_pool(pool).statistics()); });
    });
}

int tensorpool_report_json(const tensorpool_pool* pool, char* buffer, size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_json(to_pool(pool).statistics()); });
}

int tensorpool_report_text(const tensorpool_pool* pool, char* buffer, size_t buffer_bytes) {
    return report(buffer, buffer_bytes, [&] { return to_text(to_pool(pool).statistics()); });
}
