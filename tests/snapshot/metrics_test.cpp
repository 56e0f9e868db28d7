#include <tensorpool/metrics.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

namespace tensorpool {
namespace {

PoolStatistics pool_named(const char* name, std::uint64_t id) {
    PoolStatistics pool;
    std::strncpy(pool.name, name, sizeof pool.name - 1);
    pool.id = id;
    return pool;
}

ProcessSnapshot process_of(std::uint64_t number) {
    ProcessSnapshot snapshot;
    snapshot.process = number;
    snapshot.process_name = "photos";
    snapshot.library_version = "1.2.3";
    return snapshot;
}

using Labels = std::vector<std::pair<std::string, std::string>>;

const MetricFamily& family_of(const std::vector<MetricFamily>& families, const std::string& name) {
    for (const MetricFamily& family : families) {
        if (family.name == name) return family;
    }
    throw std::runtime_error("no " + name);
}

double value_of(const std::vector<MetricFamily>& families, const std::string& name,
                const Labels& labels) {
    for (const MetricSample& sample : family_of(families, name).samples) {
        if (sample.labels == labels) return sample.value;
    }
    throw std::runtime_error("no such sample of " + name);
}

TEST(Metrics, NoSnapshotsGiveNoMetrics) {
    EXPECT_TRUE(metric_families({}).empty());
    EXPECT_EQ(to_prometheus(std::vector<ProcessSnapshot>()), "");
}

TEST(Metrics, HaveDocumentedNames) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.pools = {pool_named("images", 1)};
    snapshot.scopes.emplace_back();
    std::set<std::string> names;
    for (const MetricFamily& family : metric_families({snapshot})) names.insert(family.name);
    for (const char* name :
         {"tensorpool_block_bytes", "tensorpool_requested_bytes_total",
          "tensorpool_allocated_bytes_total", "tensorpool_cached_bytes",
          "tensorpool_capacity_bytes", "tensorpool_reserved_bytes", "tensorpool_peak_block_bytes",
          "tensorpool_limit_bytes", "tensorpool_blocks", "tensorpool_allocations_total",
          "tensorpool_deallocations_total", "tensorpool_allocation_failures_total",
          "tensorpool_system_maps_total", "tensorpool_released_bytes_total",
          "tensorpool_scope_calls_total", "tensorpool_checks_failed_total",
          "tensorpool_process_minor_faults_total", "tensorpool_build_info"}) {
        EXPECT_TRUE(names.contains(name)) << name;
    }
}

TEST(Metrics, OnlyCountersEndInTotal) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.pools = {pool_named("images", 1)};
    snapshot.arenas.emplace_back();
    snapshot.devices.emplace_back();
    snapshot.planned.emplace_back();
    snapshot.budgets.emplace_back();
    snapshot.stashes.emplace_back();
    snapshot.scopes.emplace_back();
    for (const MetricFamily& family : metric_families({snapshot})) {
        EXPECT_EQ(family.name.ends_with("_total"), family.kind == MetricFamily::Kind::counter)
            << family.name;
        EXPECT_FALSE(family.help.empty()) << family.name;
    }
}

TEST(Metrics, HaveProcessAndPoolLabels) {
    ProcessSnapshot one = process_of(5);
    one.pools = {pool_named("images", 1), pool_named("texts", 2)};
    one.pools[1].in_use_bytes = 4096;
    ProcessSnapshot other = process_of(6);
    other.pools = {pool_named("images", 1)};
    other.pools[0].in_use_bytes = 64;
    const auto families = metric_families({one, other});
    const auto in_use = [&](const char* pid, const char* pool) {
        return value_of(families, "tensorpool_block_bytes",
                        {{"pid", pid}, {"process", "photos"}, {"pool", pool}});
    };
    EXPECT_EQ(in_use("5", "images"), 0);
    EXPECT_EQ(in_use("5", "texts"), 4096);
    EXPECT_EQ(in_use("6", "images"), 64);
}

TEST(Metrics, BudgetsHaveTheirPathAsLabel) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.budgets = {BudgetStatistics{.name = "process", .id = 3},
                        BudgetStatistics{.name = "cache", .id = 4, .parent = 3},
                        BudgetStatistics{.name = "cache", .id = 8, .parent = 3},
                        BudgetStatistics{.name = "images", .id = 9, .parent = 4}};
    std::vector<std::string> paths;
    const auto families = metric_families({snapshot});
    for (const MetricSample& sample : family_of(families, "tensorpool_budget_peak_bytes").samples) {
        ASSERT_EQ(sample.labels.back().first, "budget");
        paths.push_back(sample.labels.back().second);
    }
    EXPECT_EQ(paths, (std::vector<std::string>{"process", "process/cache", "process/cache/images",
                                               "process/cache #8"}));
}

TEST(Metrics, BudgetsWithoutALimitHaveAnInfiniteOne) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.budgets = {BudgetStatistics{.name = "process", .id = 3, .hard_bytes = 4096}};
    const auto families = metric_families({snapshot});
    EXPECT_EQ(family_of(families, "tensorpool_budget_limit_bytes").samples.at(0).value, 4096);
    EXPECT_EQ(family_of(families, "tensorpool_budget_soft_limit_bytes").samples.at(0).value,
              std::numeric_limits<double>::infinity());
}

TEST(Metrics, BytesAtRestAreDividedByTheirPlace) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.stashes = {
        StashStatistics{.name = "cache", .id = 3, .compressed_bytes = 40, .spilled_bytes = 50},
        StashStatistics{.name = "cache", .id = 4, .restore_ns = 1'500'000'000}};
    const auto families = metric_families({snapshot});
    const auto& rest = family_of(families, "tensorpool_stash_rest_bytes").samples;
    ASSERT_EQ(rest.size(), 4U);
    using Label = std::pair<std::string, std::string>;
    EXPECT_EQ(rest[1].labels.back(), Label("place", "file"));
    EXPECT_EQ(rest[1].value, 50);
    EXPECT_EQ(rest[2].labels[rest[2].labels.size() - 2], Label("stash", "cache #4"));
    const auto& time = family_of(families, "tensorpool_stash_restore_seconds_total").samples;
    EXPECT_EQ(time.at(1).value, 1.5);
}

TEST(Metrics, PathsOfBudgetsAreBounded) {
    ProcessSnapshot snapshot = process_of(5);
    for (std::uint64_t id = 1; id <= 1000; ++id) {
        snapshot.budgets.push_back({.name = "deep", .id = id, .parent = id - 1});
    }
    const auto families = metric_families({snapshot});
    const auto& samples = family_of(families, "tensorpool_budget_peak_bytes").samples;
    ASSERT_EQ(samples.size(), 1000U);
    EXPECT_EQ(samples.back().labels.back().second.rfind(".../deep/deep", 0), 0U);
    EXPECT_LT(samples.back().labels.back().second.size(), 200U);
}

TEST(Metrics, PoolsOfSameNameHaveDifferentLabels) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.pools = {pool_named("pool", 1), pool_named("pool", 7), pool_named("pool #7", 8)};
    std::set<Labels> seen;
    const auto families = metric_families({snapshot});
    for (const MetricSample& sample : family_of(families, "tensorpool_blocks").samples) {
        EXPECT_TRUE(seen.insert(sample.labels).second);
    }
    EXPECT_EQ(seen.size(), 3U);
    EXPECT_TRUE(seen.contains({{"pid", "5"}, {"process", "photos"}, {"pool", "pool"}}));
    EXPECT_TRUE(seen.contains({{"pid", "5"}, {"process", "photos"}, {"pool", "pool #7"}}));
}

TEST(Metrics, AllocationsBySourceAddUp) {
    ProcessSnapshot snapshot = process_of(5);
    PoolStatistics pool = pool_named("images", 1);
    pool.buckets[0].allocations = 100;
    pool.buckets[0].cache_hits = 80;
    pool.buckets[0].cache_misses = 20;
    pool.buckets[0].depot_hits = 12;
    pool.buckets[0].system_misses = 1;
    pool.large.allocations = 9;
    pool.large.cache_hits = 4;
    pool.large.cache_misses = 5;
    pool.large.system_misses = 2;
    snapshot.pools = {pool};
    const auto families = metric_families({snapshot});
    const auto from = [&](const char* source) {
        return value_of(
            families, "tensorpool_allocations_total",
            {{"pid", "5"}, {"process", "photos"}, {"pool", "images"}, {"source", source}});
    };
    EXPECT_EQ(from("magazine"), 80);
    EXPECT_EQ(from("depot"), 12);
    EXPECT_EQ(from("span"), 7);
    EXPECT_EQ(from("extent"), 7);
    EXPECT_EQ(from("system"), 3);
}

DeviceStatistics device_named(const char* name, std::uint64_t id) {
    DeviceStatistics device = {.device = "cuda:1", .id = id};
    std::strncpy(device.name, name, sizeof device.name - 1);
    return device;
}

TEST(Metrics, DeviceAllocatorsHaveDeviceLabel) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.devices = {device_named("weights", 1), device_named("weights", 2)};
    snapshot.devices[0].in_use_bytes = 4096;
    snapshot.devices[1].in_use_bytes = 64;
    const auto families = metric_families({snapshot});
    const auto in_use = [&](const char* name) {
        return value_of(
            families, "tensorpool_device_block_bytes",
            {{"pid", "5"}, {"process", "photos"}, {"device", "cuda:1"}, {"allocator", name}});
    };
    EXPECT_EQ(in_use("weights"), 4096);
    EXPECT_EQ(in_use("weights #2"), 64);
}

TEST(Metrics, HelpOfDevicesNamesPyTorchMetric) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.devices = {device_named("weights", 1)};
    const auto families = metric_families({snapshot});
    EXPECT_EQ(family_of(families, "tensorpool_device_capacity_bytes").help,
              "Bytes of all slabs, free memory included. PyTorch: reserved_bytes.all.current.");
}

TEST(Metrics, DeviceAllocationsBySourceAddUp) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.devices = {device_named("weights", 1)};
    snapshot.devices[0].allocations = 100;
    snapshot.devices[0].parked_hits = 70;
    snapshot.devices[0].free_hits = 25;
    const std::string text = to_prometheus(snapshot);
    for (const char* end : {"source=\"parked\"} 70\n", "source=\"free\"} 25\n",
                            "source=\"slab\"} 5\n", "allocator=\"weights\"} +Inf\n"}) {
        EXPECT_NE(text.find(end), std::string::npos) << end << " in\n" << text;
    }
}

PlannedArenaStatistics planned_named(const char* name, std::uint64_t id) {
    PlannedArenaStatistics planned = {.id = id};
    std::strncpy(planned.name, name, sizeof planned.name - 1);
    return planned;
}

TEST(Metrics, PlannedArenasHaveNameLabel) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.planned = {planned_named("step", 1), planned_named("step", 2)};
    snapshot.planned[0].lower_bound_bytes = 4096;
    snapshot.planned[1].lower_bound_bytes = 64;
    const auto families = metric_families({snapshot});
    const auto bound = [&](const char* name) {
        return value_of(families, "tensorpool_planned_lower_bound_bytes",
                        {{"pid", "5"}, {"process", "photos"}, {"planned", name}});
    };
    EXPECT_EQ(bound("step"), 4096);
    EXPECT_EQ(bound("step #2"), 64);
}

TEST(Metrics, PlannedArenasDivideRequestsAndShowState) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.planned = {planned_named("step", 1)};
    snapshot.planned[0].state = PlannedArenaStatistics::State::serving;
    snapshot.planned[0].served = 70;
    snapshot.planned[0].from_pool = 30;
    snapshot.planned[0].too_large = 4;
    snapshot.planned[0].planning_ns = 1'500'000'000;
    const std::string text = to_prometheus(snapshot);
    for (const char* end :
         {"source=\"plan\"} 70\n", "source=\"pool\"} 30\n", "reason=\"too_large\"} 4\n",
          "reason=\"unknown\"} 0\n", "state=\"serving\"} 1\n", "state=\"learning\"} 0\n",
          "tensorpool_planned_planning_seconds_total{pid=\"5\",process=\"photos\",planned=\"step\"}"
          " 1.5\n"}) {
        EXPECT_NE(text.find(end), std::string::npos) << end << " in\n" << text;
    }
}

// Each value except the number is a metric or a part of one.
TEST(Metrics, ContainEveryValueOfPlannedArena) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.planned = {planned_named("step", 1)};
    auto* const words = &snapshot.planned[0].id;
    const std::size_t count =
        (sizeof(PlannedArenaStatistics) - offsetof(PlannedArenaStatistics, id)) / sizeof *words;
    for (std::size_t i = 1; i < count; ++i) words[i] = 1'000'000;
    std::size_t shown = 0;
    for (const MetricFamily& family : metric_families({snapshot})) {
        for (const MetricSample& sample : family.samples) shown += sample.value == 1'000'000;
    }
    EXPECT_EQ(shown, count - 2) << "the time is converted to seconds";
}

// Each value except the number is a metric or a part of one.
TEST(Metrics, ContainEveryValueOfDevice) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.devices = {device_named("weights", 1)};
    auto* const words = &snapshot.devices[0].id;
    const std::size_t count =
        (sizeof(DeviceStatistics) - offsetof(DeviceStatistics, id)) / sizeof *words;
    for (std::size_t i = 1; i < count; ++i) words[i] = 1'000'000;
    snapshot.devices[0].allocations = 3'000'000;
    std::size_t shown = 0;
    for (const MetricFamily& family : metric_families({snapshot})) {
        for (const MetricSample& sample : family.samples) shown += sample.value == 1'000'000;
    }
    EXPECT_EQ(shown, count - 1) << "allocations are divided by source";
}

TEST(Metrics, MissingLimitIsInfinite) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.pools = {pool_named("free", 1), pool_named("bound", 2)};
    snapshot.pools[1].limit_bytes = 1 << 20;
    const auto families = metric_families({snapshot});
    const auto& samples = family_of(families, "tensorpool_limit_bytes").samples;
    EXPECT_TRUE(std::isinf(samples.at(0).value));
    EXPECT_EQ(samples.at(1).value, 1 << 20);
    EXPECT_NE(to_prometheus(snapshot).find("pool=\"free\"} +Inf\n"), std::string::npos);
}

TEST(Metrics, FailuresHaveReasonLabel) {
    ProcessSnapshot snapshot = process_of(5);
    PoolStatistics pool = pool_named("images", 1);
    pool.failures_by_limit = {1, 2, 3, 4, 5, 6};
    snapshot.pools = {pool};
    const std::string text = to_prometheus(snapshot);
    for (const char* end :
         {"reason=\"other\"} 1\n", "reason=\"max_allocation\"} 2\n", "reason=\"max_capacity\"} 3\n",
          "reason=\"memory\"} 4\n", "reason=\"address_space\"} 5\n", "reason=\"records\"} 6\n"}) {
        EXPECT_NE(text.find(end), std::string::npos) << end << " in\n" << text;
    }
}

TEST(ToPrometheus, EscapesNamesAndKeepsOtherScripts) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.process_name = "a\"b\\c\nd";
    snapshot.pools = {pool_named("größe\xff", 1)};
    const std::string text = to_prometheus(snapshot);
    EXPECT_NE(
        text.find(
            "tensorpool_blocks{pid=\"5\",process=\"a\\\"b\\\\c\\nd\",pool=\"größe\uFFFD\"} 0\n"),
        std::string::npos)
        << text;
}

TEST(ToPrometheus, WritesHelpAndTypeOnceBeforeSamples) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.pools = {pool_named("a", 1)};
    const std::string text = to_prometheus({snapshot, process_of(6)});
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find("# TYPE tensorpool_blocks ", at)) != std::string::npos;
         ++at) {
        ++count;
    }
    EXPECT_EQ(count, 1U);
    EXPECT_NE(text.find("# HELP tensorpool_blocks Blocks that callers hold.\n"
                        "# TYPE tensorpool_blocks gauge\n"
                        "tensorpool_blocks{"),
              std::string::npos)
        << text;
}

TEST(ToPrometheus, WritesLargeTotalsExactly) {
    ProcessSnapshot snapshot = process_of(5);
    snapshot.minor_faults = 123456789012345;
    EXPECT_NE(to_prometheus(snapshot).find(
                  "tensorpool_process_minor_faults_total{pid=\"5\",process=\"photos\"} "
                  "123456789012345\n"),
              std::string::npos);
}

}  // namespace
}  // namespace tensorpool
