#include "statistics/reader/segment_snapshot.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "base/block_sizes.hpp"
#include "platform/platform.hpp"
#include "statistics/metrics/scope_metrics.hpp"
#include "statistics/segment/name.hpp"
#include "statistics/segment/segment_image.hpp"
#include "statistics/sums/arena_statistics.hpp"
#include "statistics/sums/budget_statistics.hpp"
#include "statistics/sums/counter_words.hpp"
#include "statistics/sums/device_statistics.hpp"
#include "statistics/sums/planned_statistics.hpp"
#include "statistics/sums/pool_statistics.hpp"
#include "statistics/sums/stash_statistics.hpp"

namespace tensorpool::statistics {
namespace {

/// The indices of a pool's counters records.
using CounterIndices = std::span<const std::size_t>;

/// Finds which counters belong to which pool. Reads each counters record once, whatever it
/// contains.
class CountersByPool {
public:
    explicit CountersByPool(const SegmentImage& image);
    /// Returns the counters of a pool. Each record is returned once: if several pools have the same
    /// number, the first one gets the records. A process that overwrites its segment therefore
    /// cannot make a reader sum the same records for each pool.
    CounterIndices take(std::uint64_t pool) noexcept;

private:
    std::vector<std::uint64_t> pools_;  // for each index below, in ascending order
    std::vector<std::size_t> indices_;
    std::vector<bool> taken_;
};

std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

/// Returns the series of sizes that a counters record counts; 0 if another process overwrote it.
unsigned series_of(const CountersRecord& record) noexcept {
    const std::uint64_t series = read(record.series);
    return series < base::series_count ? static_cast<unsigned>(series) : 0;
}

void add(ThreadStatistics& thread, const detail::ThreadCounters& counted,
         unsigned series = 0) noexcept {
    for (const detail::BucketCounters& bucket : counted.buckets) {
        thread.deallocations += read(bucket.deallocations);
        thread.allocations += read(bucket.allocations);
    }
    thread.deallocations += read(counted.large.deallocations);
    thread.allocations += read(counted.large.allocations);
    thread.parked_bytes += parked_bytes_of(counted, series);
}

CountersByPool::CountersByPool(const SegmentImage& image) {
    std::vector<std::pair<std::uint64_t, std::size_t>> found;
    for (std::size_t index = 0; index < image.records<CountersRecord>().size(); ++index) {
        const std::uint64_t pool = read(image.records<CountersRecord>()[index].pool);
        if (pool != 0) found.emplace_back(pool, index);
    }
    std::sort(found.begin(), found.end());
    for (const auto& [pool, index] : found) {
        pools_.push_back(pool);
        indices_.push_back(index);
    }
    taken_.resize(indices_.size());
}

CounterIndices CountersByPool::take(std::uint64_t pool) noexcept {
    const auto [first, last] = std::equal_range(pools_.begin(), pools_.end(), pool);
    const auto begin = static_cast<std::size_t>(first - pools_.begin());
    if (first == last || taken_[begin]) return {};
    taken_[begin] = true;
    return CounterIndices(indices_).subspan(begin, static_cast<std::size_t>(last - first));
}

/// Adds an element for each thread of a pool. Adds another with the number 0 for threads that ended
/// or have no counters of their own, if they counted anything.
void add_threads(std::vector<ThreadStatistics>& threads, const SegmentImage& image,
                 const PoolRecord& pool, CounterIndices indices) {
    ThreadStatistics others;
    others.pool = read(pool.id);
    add(others, pool.shared);
    add(others, pool.left_out);
    std::map<std::uint64_t, ThreadStatistics> by_number;  // a thread has counters for each series
    for (const std::size_t index : indices) {
        const CountersRecord& record = image.records<CountersRecord>()[index];
        const std::uint64_t number = read(record.thread);
        add(number == 0 ? others : by_number[number], record.counters, series_of(record));
    }
    for (auto& [number, thread] : by_number) {
        thread.thread = number;
        thread.pool = others.pool;
        threads.push_back(std::move(thread));
    }
    if (others.allocations + others.deallocations != 0) threads.push_back(std::move(others));
}

// A change takes a microsecond, and one reading some tens of microseconds. This many readings in a
// row meet a change only if pools and threads are created and destroyed all the time, or if the
// process was stopped during a change.
constexpr unsigned max_looks = 8;

template <class Statistics>
void sort_by_age(std::vector<Statistics>& group) {
    // Numbers are given out in order. The record `other` has the number 0 and comes last.
    std::sort(group.begin(), group.end(),
              [](const Statistics& a, const Statistics& b) { return a.id - 1 < b.id - 1; });
}

/// Returns whether a record is in use. The first record of a kind is `other`.
bool is_taken(std::size_t index, const Counter& id, bool other_is_used) noexcept {
    return index == 0 ? other_is_used : read(id) != 0;
}

void add_pools(ProcessSnapshot& to, const SegmentImage& earlier, const SegmentImage& later) {
    CountersByPool counters(later);
    for (std::size_t index = 0; index < later.records<PoolRecord>().size(); ++index) {
        const PoolRecord& pool = later.records<PoolRecord>()[index];
        if (index != 0 && read(pool.id) == 0) continue;
        const CounterIndices its = counters.take(read(pool.id));
        PoolSums sums;
        if (index < earlier.records<PoolRecord>().size()) {
            sums.add_frees(earlier.records<PoolRecord>()[index].shared, 0);
            sums.add_frees(earlier.records<PoolRecord>()[index].left_out, 0);
        }
        for (const std::size_t i : its) {
            if (i >= earlier.records<CountersRecord>().size()) continue;
            const CountersRecord& counted = earlier.records<CountersRecord>()[i];
            sums.add_frees(counted.counters, series_of(counted));
        }
        sums.add_allocations(pool.shared, 0);
        sums.add_allocations(pool.left_out, 0);
        for (const std::size_t i : its) {
            const CountersRecord& counted = later.records<CountersRecord>()[i];
            sums.add_allocations(counted.counters, series_of(counted));
        }
        PoolStatistics statistics = sums.with(pool);
        const bool used =
            to.left_out.pools + statistics.capacity_bytes + statistics.allocations != 0;
        if (!is_taken(index, pool.id, used)) continue;
        // The sums of policies mean nothing.
        if (index == 0) statistics.id = statistics.retain_bytes = statistics.retain_ms = 0;
        add_threads(to.threads, later, pool, its);
        to.pools.push_back(statistics);
    }
    sort_by_age(to.pools);
    std::stable_sort(to.threads.begin(), to.threads.end(),
                     [](const auto& a, const auto& b) { return a.pool - 1 < b.pool - 1; });
}

void add_arenas(ProcessSnapshot& to, const SegmentImage& later) {
    for (std::size_t index = 0; index < later.records<ArenaRecord>().size(); ++index) {
        const ArenaRecord& arena = later.records<ArenaRecord>()[index];
        ArenaStatistics statistics = statistics_of(arena);
        const bool used = to.left_out.arenas + statistics.capacity_bytes != 0;
        if (!is_taken(index, arena.id, used)) continue;
        if (index == 0) statistics.id = 0;
        const bool is_scratch = statistics.kind == ArenaStatistics::Kind::scratch;
        (is_scratch ? to.scratches : to.arenas).push_back(statistics);
    }
    sort_by_age(to.arenas);
    sort_by_age(to.scratches);
}

/// Sums what the streams of the device allocator in this record did.
DeviceSums sums_of(std::size_t index, const SegmentImage& earlier,
                   const SegmentImage& later) noexcept {
    DeviceSums sums;
    const std::uint64_t id = read(later.records<DeviceRecord>()[index].id);
    const auto for_each_stream = [id](const SegmentImage& image, auto function) {
        for (const DeviceStreamRecord& stream : image.records<DeviceStreamRecord>()) {
            if (id != 0 && read(stream.device) == id) function(stream.counters);
        }
    };
    for_each_stream(earlier, [&](const auto& counters) { sums.add_frees(counters); });
    if (index < earlier.records<DeviceRecord>().size())
        sums.add_frees(earlier.records<DeviceRecord>()[index].left_out);
    for_each_stream(later, [&](const auto& counters) { sums.add_allocations(counters); });
    sums.add_allocations(later.records<DeviceRecord>()[index].left_out);
    return sums;
}

void add_devices(ProcessSnapshot& to, const SegmentImage& earlier, const SegmentImage& later) {
    for (std::size_t index = 0; index < later.records<DeviceRecord>().size(); ++index) {
        const DeviceRecord& device = later.records<DeviceRecord>()[index];
        if (index != 0 && read(device.id) == 0) continue;
        DeviceStatistics statistics = sums_of(index, earlier, later).with(device);
        const bool used = to.left_out.devices + statistics.capacity_bytes != 0;
        if (!is_taken(index, device.id, used)) continue;
        if (index == 0) statistics.id = 0;
        to.devices.push_back(statistics);
    }
    sort_by_age(to.devices);
}

/// Limits each part to the value that includes it: another process writes meanwhile.
void add_device_streams(ProcessSnapshot& to, const SegmentImage& later) {
    const std::uint64_t now = platform::monotonic_clock_ns();
    for (const DeviceStreamRecord& stream : later.records<DeviceStreamRecord>()) {
        const std::uint64_t device = read(stream.device);
        if (device == 0) continue;
        DeviceStreamStatistics statistics;
        statistics.device = device;
        statistics.stream = read(stream.stream);
        statistics.capture = read(stream.capture);
        statistics.held_bytes = read(stream.held_bytes);
        statistics.used_bytes = above(statistics.held_bytes, read(stream.free_bytes));
        statistics.parked_bytes =
            std::min(read(stream.counters.parked_bytes), statistics.used_bytes);
        statistics.waiting_bytes = read(stream.waiting_bytes);
        const std::uint64_t since = read(stream.waiting_since_ns);
        if (since != 0) statistics.waiting_ns = above(now, since);
        if (statistics.held_bytes + statistics.waiting_bytes == 0) continue;
        to.device_streams.push_back(statistics);
    }
    std::ranges::stable_sort(to.device_streams, {}, &DeviceStreamStatistics::device);
}

void add_planned(ProcessSnapshot& to, const SegmentImage& later) {
    for (std::size_t index = 0; index < later.records<PlannedRecord>().size(); ++index) {
        const PlannedRecord& planned = later.records<PlannedRecord>()[index];
        PlannedArenaStatistics statistics = statistics_of(planned);
        const bool used = to.left_out.planned + statistics.capacity_bytes != 0;
        if (!is_taken(index, planned.id, used)) continue;
        if (index == 0) statistics.id = 0;
        to.planned.push_back(statistics);
    }
    sort_by_age(to.planned);
}

ScopeStatistics statistics_of(const ScopeRecord& scope) noexcept {
    ScopeStatistics statistics;
    load_name(scope.name, statistics.name);
    add_counters(statistics, scope, Reading::second);
    return statistics;
}

void add_header(ProcessSnapshot& to, const SegmentHeader& header) {
    char text[Name::bytes];
    load_name(header.process_name, text);
    to.process_name = text;
    load_name(header.library_version, text);
    to.library_version = text;
    to.process = read(header.process);
    to.entries = read(header.entries);
    const auto addresses = [](const MemoryRange& range) {
        return ProcessSnapshot::Addresses{read(range.begin), read(range.bytes)};
    };
    to.pool_addresses = addresses(header.pool_addresses);
    to.page_map = addresses(header.page_map);
    const auto failed = [&](CheckKind kind) {
        return read(header.failed_checks[static_cast<unsigned>(kind)]);
    };
    to.failed_misuse = failed(CheckKind::misuse);
    to.failed_leaks = failed(CheckKind::leak);
    to.failed_threads = failed(CheckKind::thread);
    to.failed_scope_orders = failed(CheckKind::scope_order);
    to.left_out = {.pools = read(header.region<PoolRecord>().left_out),
                   .arenas = read(header.region<ArenaRecord>().left_out),
                   .devices = read(header.region<DeviceRecord>().left_out),
                   .device_streams = read(header.region<DeviceStreamRecord>().left_out),
                   .planned = read(header.region<PlannedRecord>().left_out),
                   .slots = read(header.region<CountersRecord>().left_out),
                   .budgets = read(header.region<BudgetRecord>().left_out),
                   .stashes = read(header.region<StashRecord>().left_out),
                   .scopes = read(header.region<ScopeRecord>().left_out)};
}

std::uint64_t committed_bytes_of(const ProcessSnapshot& snapshot) noexcept {
    std::uint64_t bytes = 0;
    for (const PoolStatistics& pool : snapshot.pools) bytes += pool.capacity_bytes;
    for (const ArenaStatistics& arena : snapshot.arenas) {
        if (arena.kind == ArenaStatistics::Kind::growing) bytes += arena.capacity_bytes;
    }
    for (const ArenaStatistics& scratch : snapshot.scratches) bytes += scratch.capacity_bytes;
    for (const PlannedArenaStatistics& arena : snapshot.planned) bytes += arena.capacity_bytes;
    return bytes;
}

ProcessSnapshot snapshot_in(const SegmentView& view) {
    ProcessSnapshot statistics;
    add_header(statistics, view.later().header());
    add_pools(statistics, view.earlier(), view.later());
    add_arenas(statistics, view.later());
    add_devices(statistics, view.earlier(), view.later());
    add_device_streams(statistics, view.later());
    add_planned(statistics, view.later());
    statistics.budgets = budgets_in(view.later());
    statistics.stashes = stashes_in(view.later());
    statistics.scopes = scopes_in(view.later());
    statistics.committed_bytes = committed_bytes_of(statistics);
    return statistics;
}

}  // namespace

// Records of scopes are given out in order and are never removed.
std::vector<ScopeStatistics> scopes_in(const SegmentImage& image) {
    std::vector<ScopeStatistics> scopes;
    const auto add = [&](std::size_t index) {
        const ScopeStatistics statistics = statistics_of(image.records<ScopeRecord>()[index]);
        const bool used = statistics.calls + statistics.open + statistics.out_of_order != 0;
        if (is_taken(index, image.records<ScopeRecord>()[index].id, used))
            scopes.push_back(statistics);
    };
    for (std::size_t index = 1; index < image.records<ScopeRecord>().size(); ++index) add(index);
    if (!image.records<ScopeRecord>().empty()) add(0);
    return scopes;
}

std::optional<SegmentProblem> read_segment(SegmentView& view, ProcessSnapshot& to) {
    for (unsigned look = 0; look < max_looks; ++look) {
        if (auto problem = view.refresh()) return problem;
        to = snapshot_in(view);
        to.consistent = view.is_steady();
        if (to.consistent) break;
    }
    return std::nullopt;
}

}  // namespace tensorpool::statistics
