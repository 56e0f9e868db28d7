#include "made_up_data.hpp"

#include <cstring>

namespace tensorpool::command {
namespace {

constexpr std::uint64_t mib = 1 << 20;

template <class Named>
void give_name(Named& named, const char* name) {
    std::strncpy(named.name, name, sizeof named.name - 1);
}

PoolStatistics made_up_pool(const char* name, std::uint64_t id, std::uint64_t in_use) {
    PoolStatistics pool;
    give_name(pool, name);
    pool.id = id;
    pool.in_use_bytes = in_use;
    pool.capacity_bytes = 2 * in_use;
    pool.peak_in_use_bytes = in_use + mib;
    pool.allocations = 1000;
    pool.deallocations = 900;
    pool.cache_hits = 990;
    pool.cache_misses = 10;
    pool.buckets[4] = {.block_bytes = 1024,
                       .in_use_bytes = 100 * 1024,
                       .parked_bytes = 10 * 1024,
                       .capacity_bytes = 200 * 1024,
                       .allocations = 1000,
                       .deallocations = 900,
                       .requested_bytes = 750'000,
                       .allocated_bytes = 1'000'000,
                       .cache_hits = 990,
                       .cache_misses = 10,
                       .depot_hits = 5,
                       .system_misses = 1,
                       .depot_bytes = 0};
    return pool;
}

ArenaStatistics made_up_arena(const char* name, ArenaStatistics::Kind kind, std::uint64_t id) {
    ArenaStatistics arena;
    give_name(arena, name);
    arena.kind = kind;
    arena.id = id;
    arena.used_bytes = 3 * mib;
    arena.peak_used_bytes = 4 * mib;
    arena.capacity_bytes = 5 * mib;
    return arena;
}

DeviceStatistics made_up_device(const char* name, std::uint64_t id) {
    DeviceStatistics device = {.device = "cuda:0", .id = id};
    give_name(device, name);
    device.in_use_bytes = 300 * mib;
    device.peak_in_use_bytes = 500 * mib;
    device.requested_in_use_bytes = 290 * mib;
    device.deferred_bytes = 20 * mib;
    device.peak_active_bytes = 510 * mib;
    device.capacity_bytes = 640 * mib;
    device.peak_capacity_bytes = 768 * mib;
    device.free_bytes = 320 * mib;
    device.split_bytes = 40 * mib;
    device.slabs = 5;
    device.streams = 2;
    device.allocations = 1000;
    device.deallocations = 900;
    device.parked_hits = 950;
    device.free_hits = 40;
    device.pressures = 1;
    return device;
}

PlannedArenaStatistics made_up_planned(const char* name, std::uint64_t id) {
    PlannedArenaStatistics planned = {.state = PlannedArenaStatistics::State::serving, .id = id};
    give_name(planned, name);
    planned.buffers = 442;
    planned.lower_bound_bytes = 100 * mib;
    planned.pool_peak_bytes = 125 * mib;
    planned.plan_peak_bytes = 101 * mib;
    planned.served = 990;
    planned.from_pool = 460;
    planned.too_large = 3;
    planned.unknown = 2;
    planned.iterations = 4;
    planned.plans = 1;
    return planned;
}

BudgetStatistics made_up_budget(const char* name, std::uint64_t id, std::uint64_t parent) {
    BudgetStatistics budget = {.id = id, .parent = parent};
    give_name(budget, name);
    return budget;
}

std::vector<StashStatistics> made_up_stashes() {
    StashStatistics map = {.kind = StashStatistics::Kind::map, .id = 21, .budget = 10};
    give_name(map, "kv-cache");
    map.tensors = 40;
    map.memory_bytes = 96 * mib;
    map.stashed_bytes = 400 * mib;
    map.compressed_bytes = 60 * mib;
    map.spilled_bytes = 40 * mib;
    map.hits = 900;
    map.misses = 120;
    map.stashes = 140;
    map.spills = 30;
    map.restores = 120;
    map.failures = 1;
    map.stash_ns = 2'500'000'000;
    map.restore_ns = 750'000'000;
    StashStatistics stashes = {.id = 22, .budget = 99};
    give_name(stashes, "optimizer");
    return {map, stashes};
}

std::vector<BudgetStatistics> made_up_budgets() {
    std::vector<BudgetStatistics> budgets = {
        made_up_budget("process", 8, 0), made_up_budget("model", 9, 8),
        made_up_budget("loader", 10, 8), made_up_budget("request", 11, 9)};
    budgets[0].in_use_bytes = budgets[0].peak_bytes = 300 * mib;
    budgets[1].in_use_bytes = budgets[1].peak_bytes = 100 * mib;
    budgets[2].soft_bytes = 150 * mib;
    budgets[2].hard_bytes = 250 * mib;
    budgets[2].in_use_bytes = 200 * mib;
    budgets[2].peak_bytes = 240 * mib;
    budgets[2].refusals = 3;
    budgets[2].reclaims = 7;
    budgets[2].reclaimed_bytes = 50 * mib;
    budgets[3].soft_bytes = 10 * mib;
    return budgets;
}

}  // namespace

ProcessSnapshot made_up_snapshot() {
    ProcessSnapshot snapshot;
    snapshot.process = 4711;
    snapshot.process_name = "train";
    snapshot.library_version = "1.2.3";
    snapshot.time_ns = 5'000'000'000;
    snapshot.pools = {made_up_pool("weights", 1, 100 * mib), made_up_pool("batches", 2, 10 * mib)};
    snapshot.pools[1].limit_bytes = 64 * mib;
    snapshot.arenas = {made_up_arena("phases", ArenaStatistics::Kind::growing, 3)};
    snapshot.scratches = {made_up_arena("scratch", ArenaStatistics::Kind::scratch, 4)};
    snapshot.devices = {made_up_device("activations", 5)};
    snapshot.device_streams = {{.device = snapshot.devices[0].id,
                                .stream = 2,
                                .held_bytes = 64 << 20,
                                .used_bytes = 40 << 20,
                                .waiting_bytes = 20 << 20,
                                .waiting_ns = 5'200'000'000}};
    snapshot.planned = {made_up_planned("step", 7)};
    snapshot.budgets = made_up_budgets();
    snapshot.stashes = made_up_stashes();
    ScopeStatistics scope;
    give_name(scope, "forward");
    scope.calls = 10;
    scope.allocated_bytes = 1000;
    scope.deallocated_bytes = 3000;
    snapshot.scopes = {scope};
    snapshot.threads = {{4711, 1, "main", 600, 500, 2048}, {4712, 1, "loader", 400, 400, 1024}};
    return snapshot;
}

ProcessSnapshot later(ProcessSnapshot snapshot, double seconds, std::uint64_t allocations) {
    snapshot.time_ns += static_cast<std::uint64_t>(seconds * 1e9);
    snapshot.pools[0].allocations += allocations;
    snapshot.pools[0].cache_hits += allocations;
    snapshot.pools[0].buckets[4].allocations += allocations;
    snapshot.devices[0].allocations += allocations;
    snapshot.devices[0].parked_hits += allocations;
    snapshot.threads[0].allocations += allocations;
    return snapshot;
}

TopData made_up_data() {
    TopData data;
    WatchedProcess train{{4711, "train", true, ""}, {}, {}, false};
    add_snapshot(train, made_up_snapshot(), data.highest);
    add_snapshot(train, later(made_up_snapshot(), 2, 5000), data.highest);
    data.processes = {train,
                      {{12, "secret", false, "it is another user's; use sudo"}, {}, {}, false}};
    data.chosen = train;
    data.entries = {
        {1, 1'700'000'000'000'000'000, 4711, EntryKind::growth, LimitKind::none, mib, "weights"},
        {2, 1'700'000'001'000'000'000, 4711, EntryKind::limit, LimitKind::capacity, mib,
         "batches"}};
    return data;
}

}  // namespace tensorpool::command
