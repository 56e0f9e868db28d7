#include "made_up_snapshots.hpp"

#include <cstdio>
#include <string>

namespace tensorpool::testing {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;

template <std::size_t bytes>
void set_name(char (&into)[bytes], const char* name) {
    std::snprintf(into, bytes, "%s", name);
}

PoolStatistics pool(const char* name, std::uint64_t id, std::uint64_t limit) {
    PoolStatistics made;
    set_name(made.name, name);
    made.id = id;
    made.in_use_bytes = 5 * mebibyte;
    made.capacity_bytes = 8 * mebibyte;
    made.reserved_bytes = 1024 * mebibyte;
    made.limit_bytes = limit;
    made.peak_in_use_bytes = 6 * mebibyte;
    made.requested_bytes = 90 * mebibyte;
    made.allocated_bytes = 100 * mebibyte;
    made.allocations = 1000;
    made.deallocations = 900;
    made.cache_hits = 940;
    made.cache_misses = 60;
    made.failures = 3;
    made.failures_by_limit = {0, 1, 2, 0, 0, 0};
    made.parked_bytes = mebibyte;
    made.free_bytes = 2 * mebibyte;
    made.growths = 2;
    made.give_backs = 1;
    made.given_back_bytes = mebibyte;
    made.buckets[0].allocations = 900;
    made.buckets[0].cache_hits = 850;
    made.large.allocations = 100;
    made.large.cache_hits = 90;
    return made;
}

ArenaStatistics arena(const char* name, std::uint64_t id, ArenaStatistics::Kind kind) {
    ArenaStatistics made;
    set_name(made.name, name);
    made.kind = kind;
    made.id = id;
    made.used_bytes = mebibyte;
    made.capacity_bytes = 2 * mebibyte;
    made.limit_bytes = 4 * mebibyte;
    made.refusals = 1;
    return made;
}

DeviceStatistics device(const char* name, std::uint64_t id, std::uint64_t limit) {
    DeviceStatistics made;
    set_name(made.name, name);
    set_name(made.device, "cuda:0");
    made.id = id;
    made.in_use_bytes = 5 * mebibyte;
    made.capacity_bytes = 8 * mebibyte;
    made.limit_bytes = limit;
    made.allocations = 1000;
    made.parked_hits = 900;
    made.free_hits = 90;
    made.pressures = 1;
    return made;
}

StashStatistics stash(const char* name, std::uint64_t id) {
    StashStatistics made = {.kind = StashStatistics::Kind::map, .id = id, .tensors = 3};
    set_name(made.name, name);
    made.stashed_bytes = 8 * mebibyte;
    made.compressed_bytes = mebibyte;
    made.spilled_bytes = 2 * mebibyte;
    made.misses = 40;
    made.restore_ns = 1'500'000'000;
    return made;
}

BudgetStatistics budget(const char* name, std::uint64_t id, std::uint64_t parent) {
    BudgetStatistics made = {.id = id, .parent = parent, .hard_bytes = 8 * mebibyte};
    set_name(made.name, name);
    made.in_use_bytes = 3 * mebibyte;
    made.peak_bytes = 4 * mebibyte;
    made.refusals = 2;
    made.reclaimed_bytes = mebibyte;
    return made;
}

PlannedArenaStatistics planned(const char* name, std::uint64_t id) {
    PlannedArenaStatistics made;
    set_name(made.name, name);
    made.state = PlannedArenaStatistics::State::serving;
    made.id = id;
    made.lower_bound_bytes = 5 * mebibyte;
    made.pool_peak_bytes = 7 * mebibyte;
    made.plan_peak_bytes = 5 * mebibyte;
    made.capacity_bytes = 6 * mebibyte;
    made.served = 900;
    made.from_pool = 100;
    made.too_large = 3;
    made.planning_ns = 12'345'678;
    return made;
}

ScopeStatistics scope(const char* name) {
    ScopeStatistics made;
    set_name(made.name, name);
    made.calls = 10;
    made.allocations = 20;
    made.deallocations = 19;
    made.requested_bytes = 1900;
    made.allocated_bytes = 2000;
    made.deallocated_bytes = 1900;
    made.peak_bytes = 300;
    return made;
}

ProcessSnapshot process(std::uint64_t number, const char* name) {
    ProcessSnapshot made;
    made.process = number;
    made.process_name = name;
    made.library_version = "0.1.0";
    made.minor_faults = 1234;
    made.resident_bytes = 50 * mebibyte;
    made.failed_misuse = 1;
    made.pools = {pool(name, 1, 0), pool("limited", 2, 16 * mebibyte), pool("limited", 3, 0)};
    made.arenas = {arena(name, 4, ArenaStatistics::Kind::growing)};
    made.scratches = {arena(name, 5, ArenaStatistics::Kind::scratch)};
    made.devices = {device(name, 6, 0), device("limited", 7, 16 * mebibyte),
                    device("limited", 8, 0)};
    made.planned = {planned(name, 9), planned(name, 10)};
    made.budgets = {budget(name, 11, 0), budget(name, 12, 11)};
    made.stashes = {stash(name, 13), stash(name, 14)};
    made.scopes = {scope(name), scope("forward")};
    return made;
}

// Every byte that a name may contain, including those that are not text.
std::string all_bytes() {
    std::string bytes;
    for (int byte = 1; byte < 256; ++byte) bytes += static_cast<char>(byte);
    return bytes;
}

}  // namespace

std::vector<ProcessSnapshot> made_up_snapshots() {
    return {process(101, "trainer"), process(102, hard_name), process(103, cut_name),
            process(104, all_bytes().c_str())};
}

}  // namespace tensorpool::testing
