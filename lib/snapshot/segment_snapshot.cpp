#include "snapshot/segment_snapshot.hpp"

#include <tensorpool/snapshot.hpp>

#include "snapshot/typed_records.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/sums/pool_statistics.hpp"

namespace tensorpool::snapshots {
namespace {

using namespace statistics;
using base::read;
using read::SegmentProblem;
using read::SegmentView;

/// The indices of a pool's counters records, in ascending order.
using CounterIndices = std::vector<std::size_t>;

/// Finds which counters belong to which pool. Reads each counters record once, whatever it
/// contains.
class CountersByPool {
public:
    explicit CountersByPool(const SegmentImage& image) {
        const auto records = image.records<CountersRecord>();
        for (std::size_t index = 0; index < records.size(); ++index) {
            const std::uint64_t pool = read(records[index].pool);
            if (pool != 0) indices_[pool].push_back(index);
        }
    }
    /// Returns the counters of a pool. Each record is returned once: if several pools have the same
    /// number, the first one gets the records. A process that overwrites its segment therefore
    /// cannot make a reader sum the same records for each pool.
    CounterIndices take(std::uint64_t pool) noexcept {
        const auto found = indices_.find(pool);
        return found == indices_.end() ? CounterIndices() : std::exchange(found->second, {});
    }

private:
    std::map<std::uint64_t, CounterIndices> indices_;  // another process chooses the keys
};

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

/// Adds an element for each thread of a pool. Adds another with the number 0 for threads that ended
/// or have no counters of their own, if they counted anything.
void add_threads(std::vector<ThreadStatistics>& threads, const SegmentImage& image,
                 const PoolRecord& pool, const CounterIndices& indices) {
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
            to.left_out.at("pools") + statistics.capacity_bytes + statistics.allocations != 0;
        if (index == 0 && !used) continue;  // the record `other`
        // The sums of policies mean nothing.
        if (index == 0) statistics.id = statistics.retain_bytes = statistics.retain_ms = 0;
        add_threads(to.threads, later, pool, its);
        to.pools.push_back(statistics);
    }
    // Numbers are given out in order. The record `other` has the number 0 and comes last.
    std::ranges::sort(to.pools, {}, [](const PoolStatistics& pool) { return pool.id - 1; });
    std::ranges::stable_sort(to.threads, {},
                             [](const ThreadStatistics& thread) { return thread.pool - 1; });
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
    to.left_out["pools"] = read(header.region<PoolRecord>().left_out);
    to.left_out["slots"] = read(header.region<CountersRecord>().left_out);
}

/// Moves the records to the structures that the snapshot has for them, and those of other kinds to
/// its `others`.
void take_records(ProcessSnapshot& to, std::vector<read::FoundRecords>&& all) {
    const auto take = [&]<class Statistics>(RecordGroup& group, std::vector<Statistics>& into) {
        if (snapshots::table_of<Statistics>().name != group.name) return false;
        into = snapshots::typed<Statistics>(group);
        return true;
    };
    for (auto& [group, left_out] : all) {
        to.left_out[group.name] = left_out;
        const bool is_known = take(group, to.arenas) || take(group, to.devices) ||
                              take(group, to.device_streams) || take(group, to.planned) ||
                              take(group, to.budgets) || take(group, to.stashes) ||
                              take(group, to.scopes);
        if (!is_known) to.others.push_back(std::move(group));
    }
    const auto scratches = std::stable_partition(
        to.arenas.begin(), to.arenas.end(),
        [](const ArenaStatistics& one) { return one.kind != ArenaStatistics::Kind::scratch; });
    to.scratches.assign(scratches, to.arenas.end());
    to.arenas.erase(scratches, to.arenas.end());
    std::ranges::stable_sort(to.device_streams, {}, &DeviceStreamStatistics::device);
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

ProcessSnapshot snapshot_in(SegmentView& view) {
    ProcessSnapshot statistics;
    add_header(statistics, view.later().header());
    add_pools(statistics, view.earlier(), view.later());
    take_records(statistics, read::read_records(view));
    statistics.committed_bytes = committed_bytes_of(statistics);
    return statistics;
}

double blocks_of(std::uint64_t units) noexcept {
    return static_cast<double>(units) / SiteRecord::block_units;
}

/// What is left of a total. The process may have freed more between two loads.
std::uint64_t rest(std::uint64_t total, std::uint64_t part) noexcept {
    return total - std::min(total, part);
}

/// Gives each frame that occurs a number.
class Frames {
public:
    Frames(const SegmentImage& image, std::vector<ProfileFrame>& frames)
        : names_(image.records<FrameNameRecord>()), frames_(frames) {}

    std::uint32_t number_of(std::uint64_t word) {
        const auto [at, is_new] =
            numbers_.try_emplace(word, static_cast<std::uint32_t>(frames_.size()));
        if (is_new) frames_.push_back(frame_of(word));
        return at->second;
    }

private:
    ProfileFrame frame_of(std::uint64_t word) const {
        constexpr unsigned bits = SiteRecord::offset_bits;
        const std::uint64_t name = word >> bits;
        ProfileFrame frame{.module = {}, .offset = word & ((std::uint64_t{1} << bits) - 1)};
        if (name == 0 || name > names_.size()) return frame;
        char text[FrameNameRecord::bytes];
        load_text(names_[name - 1].words, text);
        frame.module = text;
        return frame;
    }

    std::span<const FrameNameRecord> names_;
    std::vector<ProfileFrame>& frames_;
    std::map<std::uint64_t, std::uint32_t> numbers_;  // another process chooses the keys
};

ProfileSite read_site(const SiteRecord& frees, const SiteRecord& record, Frames& frames) {
    ProfileSite site;
    const std::uint64_t freed_bytes = frees.freed_bytes.load(std::memory_order_acquire);
    const std::uint64_t freed_blocks = frees.freed_blocks.load(std::memory_order_acquire);
    site.id = read(record.id);
    site.samples = read(record.samples);
    site.allocated_bytes = read(record.allocated_bytes);
    site.live_bytes = rest(site.allocated_bytes, freed_bytes);
    const std::uint64_t allocated_blocks = read(record.allocated_blocks);
    site.allocated_blocks = blocks_of(allocated_blocks);
    site.live_blocks = blocks_of(rest(allocated_blocks, freed_blocks));
    site.peak_bytes = read(record.peak_bytes);
    site.peak_blocks = blocks_of(read(record.peak_blocks));
    for (std::size_t i = 0; i != ProfileSite::lifetime_count; ++i) {
        site.lifetimes[i] = blocks_of(read(record.lifetimes[i]));
    }
    const auto count = std::min<std::uint64_t>(read(record.frame_count), SiteRecord::max_frames);
    for (std::uint64_t i = 0; i != count; ++i) {
        site.stack.push_back(frames.number_of(read(record.frames[i])));
    }
    return site;
}

/// Limits estimates by what pools counted, in proportion: live bytes by those in use, and those
/// allocated by those requested. Pools that count apart from the segment are added to it only from
/// time to time, so they set no limit.
void limit_to_counters(HeapProfile& profile, const ProcessSnapshot& counted,
                       std::uint64_t requested_before) {
    if (counted.pools.empty() || counted.left_out.at("pools") != 0) return;
    std::uint64_t in_use = 0;
    std::uint64_t requested = requested_before;
    for (const PoolStatistics& pool : counted.pools) {
        in_use += pool.in_use_bytes;
        requested += pool.requested_bytes;
    }
    const auto sum = [&](auto bytes_of) {
        double bytes = 0;
        for (const ProfileSite& site : profile.sites) bytes += static_cast<double>(bytes_of(site));
        return bytes;
    };
    const auto part = [](double most, double bytes) { return bytes <= most ? 1 : most / bytes; };
    const auto freed_by = [](const ProfileSite& site) {
        return site.allocated_bytes - site.live_bytes;
    };
    const double all_live = sum([](const ProfileSite& site) { return site.live_bytes; });
    const double live = part(static_cast<double>(std::min(in_use, requested)), all_live);
    const double freed = part(static_cast<double>(requested) - live * all_live, sum(freed_by));
    for (ProfileSite& site : profile.sites) {
        const double freed_bytes = freed * static_cast<double>(freed_by(site));
        const double freed_blocks = freed * (site.allocated_blocks - site.live_blocks);
        site.live_bytes = static_cast<std::uint64_t>(live * static_cast<double>(site.live_bytes));
        site.live_blocks *= live;
        site.allocated_bytes = site.live_bytes + static_cast<std::uint64_t>(freed_bytes);
        site.allocated_blocks = site.live_blocks + freed_blocks;
    }
}

void take_peak_of_now(HeapProfile& profile) {
    std::uint64_t live_bytes = 0;
    for (const ProfileSite& site : profile.sites) live_bytes += site.live_bytes;
    if (live_bytes <= profile.peak_bytes) return;
    profile.peak_bytes = live_bytes;
    profile.peak_unix_ns = profile.time_unix_ns;
    for (ProfileSite& site : profile.sites) {
        site.peak_bytes = site.live_bytes;
        site.peak_blocks = site.live_blocks;
    }
}

}  // namespace

std::optional<SegmentProblem> read_segment(SegmentView& view, ProcessSnapshot& to) {
    for (unsigned look = 0; look < max_looks; ++look) {
        if (auto problem = view.refresh()) return problem;
        to = snapshot_in(view);
        to.consistent = view.is_steady();
        if (to.consistent) break;
    }
    return std::nullopt;
}

void add_facts(ProcessSnapshot& to, bool is_visible) {
    to.time_ns = platform::monotonic_clock_ns();
    to.time_unix_ns = platform::wall_clock_ns();
    const auto facts = is_visible ? platform::facts_of(to.process) : std::nullopt;
    if (!facts) return;
    to.process_name = facts->name;
    to.minor_faults = facts->minor_faults;
    to.resident_bytes = facts->resident_bytes;
}

static_assert(ProfileSite::lifetime_count == SiteRecord::lifetime_count);

std::optional<read::SegmentProblem> read_heap_profile(read::SegmentView& view, HeapProfile& to) {
    if (auto problem = view.refresh()) return problem;
    const SegmentHeader& header = view.later().header();
    char text[Name::bytes];
    load_name(header.process_name, text);
    to.process_name = text;
    to.interval = read(header.profile.interval);
    to.lost_samples = read(header.profile.lost_samples);
    to.peak_bytes = read(header.profile.peak_bytes);
    to.peak_unix_ns = read(header.profile.peak_unix_ns);
    const std::uint64_t distances = read(header.profile.distances);
    const std::uint64_t requested_before = read(header.profile.requested_bytes_of_ended_pools);
    std::uint64_t samples = 0;
    Frames frames(view.later(), to.frames);
    const auto earlier = view.earlier().records<SiteRecord>();
    const auto later = view.later().records<SiteRecord>();
    for (std::size_t i = 0; i != std::min(earlier.size(), later.size()); ++i) {
        if (read(later[i].samples) == 0) continue;
        to.sites.push_back(read_site(earlier[i], later[i], frames));
        samples += to.sites.back().samples;
    }
    if (samples != 0) to.mean_distance = distances / samples;
    ProcessSnapshot counted;
    if (auto problem = read_segment(view, counted)) return problem;
    limit_to_counters(to, counted, requested_before);
    take_peak_of_now(to);
    return std::nullopt;
}

}  // namespace tensorpool::snapshots

namespace tensorpool {

Snapshot take_snapshot() {
    Snapshot snapshot;
    const statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return snapshot;
    // On the heap, because the stack of the thread may be small.
    const auto view = std::make_unique<read::SegmentView>(*header);
    (void)snapshots::read_segment(*view, snapshot);
    snapshots::add_facts(snapshot, true);
    return snapshot;
}

}  // namespace tensorpool
