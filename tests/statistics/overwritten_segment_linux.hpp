#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>

#include <tensorpool/metrics.hpp>

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "limits/budget_table.hpp"
#include "plan/planned_table.hpp"
#include "read/segment_view.hpp"
#include "rest/stash_table.hpp"
#include "snapshot/segment_snapshot.hpp"
#include "statistics/fake_segment_linux.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/sums/steady_sources.hpp"
#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool::testing {

/// Overwrites a segment, truncates it, and reads it in between, as directed by the input bytes.
/// Throws std::logic_error if a read returns more objects than there are records. Nothing else may
/// go wrong.
class OverwrittenSegment {
public:
    explicit OverwrittenSegment(std::span<const std::uint8_t> bytes)
        : rest_(bytes),
          sealed_(byte() % 2 == 0 ? FakeSegment::Sealed::yes : FakeSegment::Sealed::no),
          segment_(sealed_),
          view_(segment_.open()) {
        add_pool("images", 1);
        add_pool("texts", 2);
        segment_.add_arena("steps", 3, 0);
        put(segment_.add_device("weights", 4).totals.capacity_bytes, 1 << 20);
        put(segment_.add_device_stream(4).counters.allocated_bytes, 4096);
        put(segment_.add_planned("step", 5).totals.capacity_bytes, 1 << 20);
        put(segment_.header().region<statistics::BudgetRecord>().used, 1);
        put(segment_.add_budget("process", 6, 0).totals.in_use_bytes, 4096);
        segment_.add_budget("cache", 7, 6);
        put(segment_.header().region<statistics::StashRecord>().used, 1);
        put(segment_.add_stash("weights", 8, 7).totals.tensors, 3);
        segment_.add_site(1 << 20).frames[0] = std::uint64_t{1} << 48;
        if (view_.open()) throw std::logic_error("a valid segment was rejected");
    }

    void run() {
        while (!rest_.empty() && looks_ < max_looks) execute(byte());
        look();
    }

private:
    static constexpr unsigned max_looks = 20;  // so that one input takes only a moment

    void execute(unsigned what) {
        using namespace statistics;
        if (what > 251) return overwrite(&segment_.stash(byte() % 4), sizeof(StashRecord));
        if (what > 247) return overwrite(&segment_.budget(byte() % 4), sizeof(BudgetRecord));
        switch (what % 13) {
            case 0:
                return overwrite(&segment_.header(), sizeof(SegmentHeader));
            case 1:
                return overwrite(&segment_.pool(byte() % 4), sizeof(PoolRecord));
            case 2:
                return overwrite(&segment_.counters(byte() % 4), sizeof(CountersRecord));
            case 3:
                return overwrite(&segment_.arena(byte() % 4), sizeof(ArenaRecord));
            case 4:
                return overwrite(&segment_.scope(byte() % 4), sizeof(ScopeRecord));
            case 5:
                return overwrite(&segment_.entry(byte() % 4), sizeof(EntryRecord));
            case 6:
                return overwrite(&segment_.device(byte() % 4), sizeof(DeviceRecord));
            case 7:
                return overwrite(&segment_.device_stream(byte() % 4), sizeof(DeviceStreamRecord));
            case 8:
                return overwrite(&segment_.planned(byte() % 4), sizeof(PlannedRecord));
            case 9:
                return overwrite(&segment_.site(byte() % 4), sizeof(SiteRecord));
            case 10:
                return overwrite(&segment_.frame_name(byte() % 4), sizeof(FrameNameRecord));
            case 11:
                return sealed_ == FakeSegment::Sealed::no ? cut() : look();
            default:
                return look();
        }
    }

    void add_pool(const char* name, std::uint64_t id) {
        put(segment_.add_pool(name, id).totals.peak_held_bytes, 1 << 20);
        put(segment_.add_counters(id, 100 + id).counters.buckets[id].allocations, 5);
    }

    void overwrite(void* record, std::size_t bytes) {
        if (is_cut_) return;  // the test itself would get the signal there
        const std::size_t word = (byte() + std::size_t{256} * byte()) % (bytes / 8);
        put(static_cast<statistics::Counter*>(record)[word], value());
    }

    void cut() {
        const std::size_t eighth = byte();
        segment_.cut_to(eighth * 65536 + byte());
        is_cut_ = true;
    }

    void look() {
        ++looks_;
        ProcessSnapshot snapshot;
        if (!snapshots::read_segment(view_, snapshot)) check(snapshot);
        if (!view_.refresh_timeline()) check_timeline();
        HeapProfile profile;
        if (!snapshots::read_heap_profile(view_, profile)) check(profile);
    }

    static void check(const HeapProfile& profile) {
        using namespace statistics;
        if (profile.sites.size() > count_of<SiteRecord>) {
            throw std::logic_error("more sites than records");
        }
        for (const ProfileSite& site : profile.sites) {
            if (site.stack.size() > SiteRecord::max_frames ||
                site.live_bytes > site.allocated_bytes) {
                throw std::logic_error("a part exceeds the whole");
            }
            for (const std::uint32_t frame : site.stack) (void)profile.frames.at(frame);
        }
    }

    static void check(const BudgetStatistics& budget) {
        if (budget.in_use_bytes > budget.peak_bytes) {
            throw std::logic_error("a part exceeds the whole");
        }
    }

    void check(ProcessSnapshot& snapshot) {
        using namespace statistics;
        sources_.steady(snapshot.pools);
        if (snapshot.pools.size() > count_of<PoolRecord> ||
            snapshot.scopes.size() > count_of<ScopeRecord> ||
            snapshot.budgets.size() > count_of<BudgetRecord> ||
            snapshot.stashes.size() > count_of<StashRecord> ||
            snapshot.arenas.size() + snapshot.scratches.size() > count_of<ArenaRecord> ||
            snapshot.devices.size() > count_of<DeviceRecord> ||
            snapshot.planned.size() > count_of<PlannedRecord> ||
            snapshot.threads.size() > count_of<CountersRecord> + count_of<PoolRecord>) {
            throw std::logic_error("more objects than records");
        }
        for (const DeviceStatistics& device : snapshot.devices) check(device);
        for (const PlannedArenaStatistics& planned : snapshot.planned) check(planned);
        for (const BudgetStatistics& budget : snapshot.budgets) check(budget);
        const std::vector<RecordGroup> groups = record_groups(snapshot);
        for (const RecordGroup& group : groups) {
            if (to_grid(groups, group).rows.size() != group.records.size()) {
                throw std::logic_error("a record is lost, or there twice");
            }
        }
        // All objects if there are few; otherwise the first ones suffice to check the formatting.
        if (snapshot.pools.size() > 8) snapshot.pools.resize(8);
        if (snapshot.threads.size() > 8) snapshot.threads.resize(8);
        if (snapshot.arenas.size() > 8) snapshot.arenas.resize(8);
        if (to_json(snapshot).empty() || to_prometheus(snapshot).empty()) {
            throw std::logic_error("empty output");
        }
        (void)to_json(difference(before_, snapshot));
        before_ = std::move(snapshot);
    }

    static void check(const DeviceStatistics& device) {
        if (device.in_use_bytes + device.deferred_bytes + device.free_bytes !=
                device.capacity_bytes ||
            device.split_bytes > device.free_bytes || device.parked_bytes > device.free_bytes ||
            device.requested_in_use_bytes > device.in_use_bytes ||
            device.in_use_bytes > device.peak_in_use_bytes ||
            device.peak_in_use_bytes > device.peak_active_bytes ||
            device.peak_active_bytes > device.peak_capacity_bytes ||
            device.deallocations > device.allocations) {
            throw std::logic_error("a part exceeds the whole: " + to_json(device));
        }
        (void)to_text(device);
    }

    static void check(const PlannedArenaStatistics& planned) {
        bool fits = planned.in_use_bytes <= planned.capacity_bytes;
        std::uint64_t left = planned.from_pool;
        for (const std::uint64_t reason :
             {planned.too_large, planned.out_of_order, planned.unknown, planned.still_in_use}) {
            fits = fits && reason <= left;
            left -= reason;
        }
        if (!fits) throw std::logic_error("a part exceeds the whole: " + to_json(planned));
        (void)to_text(planned);
    }

    void check_timeline() {
        const statistics::SegmentImage& image = view_.earlier();
        const auto read = [](const statistics::Counter& counter) {
            return counter.load(std::memory_order_relaxed);
        };
        const TimelinePart part =
            statistics::read_entries(image.timeline(), read(image.header().entries),
                                     {.made_ns = read(image.header().made_ns),
                                      .made_unix_ns = read(image.header().made_unix_ns)},
                                     byte());
        if (part.entries.size() > statistics::entry_count) {
            throw std::logic_error("more entries than records");
        }
        for (const TimelineEntry& entry : part.entries) (void)(to_json(entry) + to_text(entry));
    }

    std::uint64_t value() {
        const unsigned kind = byte();
        switch (kind % 4) {
            case 0:
                return kind / 4;
            case 1:
                return std::uint64_t{1} << kind / 4;
            case 2:
                return ~std::uint64_t{0} - kind / 4;
            default: {
                std::uint64_t bytes = 0;
                for (int i = 0; i < 8; ++i) bytes = bytes << 8 | byte();
                return bytes;
            }
        }
    }

    std::uint8_t byte() {
        if (rest_.empty()) return 0;
        const std::uint8_t first = rest_.front();
        rest_ = rest_.subspan(1);
        return first;
    }

    std::span<const std::uint8_t> rest_;
    FakeSegment::Sealed sealed_;
    FakeSegment segment_;
    read::SegmentView view_;
    statistics::SteadySources sources_;
    ProcessSnapshot before_;
    bool is_cut_ = false;
    unsigned looks_ = 0;
};

}  // namespace tensorpool::testing
