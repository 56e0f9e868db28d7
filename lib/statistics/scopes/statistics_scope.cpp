#include <tensorpool/statistics_scope.hpp>

#include <atomic>
#include <cstddef>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/atomics.hpp"
#include "statistics/recorder_hooks.hpp"
#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/scopes/scope_frame.hpp"
#include "statistics/segment/failed_checks.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/timeline/timeline.hpp"

namespace tensorpool {
namespace statistics {
namespace {

bool has_name(const ScopeRecord& record, const Name& name) noexcept {
    for (std::size_t i = 0; i < std::size(name.words); ++i) {
        const auto read = [i](const Name& of) {
            return of.words[i].load(std::memory_order_relaxed);
        };
        if (read(record.name) != read(name)) return false;
    }
    return true;
}

/// Names are literals mostly, so the place of one is looked for by its address first.
ScopeRecord* record_of(CountersOfThread& own, std::string_view name) noexcept {
    const std::size_t hash = std::hash<const void*>()(name.data()) / 8;
    ScopeRecord*& known = own.known_names[hash % own.known_names.size()];
    Name wanted{};
    store_name(wanted, name);
    if (known == nullptr || !has_name(*known, wanted)) {
        known = segment().find_or_add_scope(name);
        if (known != nullptr) {
            name_source(TraceSource::scope, known->id.load(std::memory_order_relaxed), name);
        }
    }
    return known;
}

ScopeFrame* take_frame(CountersOfThread& own) noexcept {
    if (own.free_frames == nullptr) return free_scope_frames().take();
    return std::exchange(own.free_frames, own.free_frames->next_free);
}

void tell_recorder(TraceAction action, const ScopeRecord* scope) noexcept {
    if (scope == nullptr || !is_recording()) return;
    record(action, scope->id.load(std::memory_order_relaxed), nullptr, 0);
}

ScopeFrame* begin_frame(std::string_view name) noexcept {
    CountersOfThread* const own = CountersOfThread::own();
    if (own == nullptr) return nullptr;
    ScopeRecord* const record = record_of(*own, name);
    tell_recorder(TraceAction::scope_begin, record);
    const std::lock_guard guard(own->mutex);
    ScopeFrame* const frame = take_frame(*own);
    if (frame == nullptr) return nullptr;
    frame->record = record;
    frame->highest = 0;
    frame->left_by_fork = false;
    frame->begin = own->sums();
    frame->begin_net = frame->begin.net_bytes();
    frame->owner.store(own, std::memory_order_relaxed);
    frame->outer = own->innermost.load(std::memory_order_relaxed);
    own->innermost.store(frame, std::memory_order_relaxed);
    if (record != nullptr) record->open.fetch_add(1, std::memory_order_relaxed);
    return frame;
}

/// What remains of a scope that has ended, or what an open one has so far.
struct Counted {
    ScopeRecord* record;
    bool in_order = false;  // on its own thread, and innermost
    ThreadSums counted = {};
    std::uint64_t peak = 0;
};

/// Out of its thread's list, whose mutex is held. What it and those inside it saw is handed to it
/// and to the one around it.
void unlink(CountersOfThread& owner, ScopeFrame& frame) noexcept {
    ScopeFrame* inner = nullptr;
    for (ScopeFrame* one = owner.innermost.load(std::memory_order_relaxed); one != &frame;
         one = one->outer) {
        frame.take_over(*one);
        inner = one;
    }
    if (frame.outer != nullptr) frame.outer->take_over(frame);
    if (inner != nullptr) {
        inner->outer = frame.outer;
    } else {
        owner.innermost.store(frame.outer, std::memory_order_relaxed);
    }
}

/// The mutex of the calling thread's own slots is held.
void end_own_frame(CountersOfThread& own, ScopeFrame& frame, Counted& ended) noexcept {
    ended.counted = own.sums();
    own.innermost.load(std::memory_order_relaxed)->raise(ended.counted.net_bytes());
    ended.counted.subtract(frame.begin);
    ended.in_order = own.innermost.load(std::memory_order_relaxed) == &frame;
    unlink(own, frame);
    ended.peak = static_cast<std::uint64_t>(frame.highest);
    frame.next_free = std::exchange(own.free_frames, &frame);
}

/// Under the owner's mutex, if there is one: so a fork, which takes it, finds the scope open and
/// counted so, or neither.
void count_closed(const ScopeFrame& frame) noexcept {
    if (frame.record == nullptr || frame.left_by_fork) return;
    frame.record->open.fetch_sub(1, std::memory_order_relaxed);
}

Counted end_frame(ScopeFrame& frame) noexcept {
    Counted ended{.record = frame.record};
    // Acquire pairs with the store in CountersOfThread::leave: then the frame is nobody's but ours.
    while (CountersOfThread* const owner = frame.owner.load(std::memory_order_acquire)) {
        const std::lock_guard guard(owner->mutex);
        if (frame.owner.load(std::memory_order_relaxed) != owner) continue;
        count_closed(frame);
        if (owner == own_counters_of_thread) {
            end_own_frame(*owner, frame, ended);
            return ended;
        }
        unlink(*owner, frame);
        break;
    }
    if (frame.owner.load(std::memory_order_relaxed) == nullptr) count_closed(frame);
    free_scope_frames().give_back(frame);
    return ended;
}

/// What an open frame and those inside it saw, its thread's sums now among it. The mutex of its
/// thread is held.
std::uint64_t peak_so_far(const CountersOfThread& owner, const ScopeFrame& frame,
                          const ThreadSums& now) noexcept {
    ScopeFrame seen;
    seen.begin_net = frame.begin_net;
    seen.raise(now.net_bytes());
    for (const ScopeFrame* one = owner.innermost.load(std::memory_order_relaxed); one != &frame;
         one = one->outer) {
        seen.take_over(*one);
    }
    seen.take_over(frame);
    return static_cast<std::uint64_t>(seen.highest);
}

/// Since the frame began, on its thread; nothing when that has gone.
Counted counted_since(const ScopeFrame& frame) noexcept {
    Counted so_far{.record = frame.record};
    while (CountersOfThread* const owner = frame.owner.load(std::memory_order_acquire)) {
        const std::lock_guard guard(owner->mutex);
        if (frame.owner.load(std::memory_order_relaxed) != owner) continue;
        so_far.counted = owner->sums();
        so_far.peak = peak_so_far(*owner, frame, so_far.counted);
        so_far.counted.subtract(frame.begin);
        break;
    }
    return so_far;
}

ScopeStatistics statistics_of(const Counted& so_far) noexcept {
    const ThreadSums& counted = so_far.counted;
    ScopeStatistics figures{.open = 1,
                            .allocations = counted.allocation_count(),
                            .deallocations = counted.deallocation_count(),
                            .requested_bytes = counted.requested_bytes,
                            .allocated_bytes = counted.allocated_bytes(),
                            .deallocated_bytes = counted.deallocated_bytes(),
                            .peak_bytes = so_far.peak};
    if (so_far.record != nullptr) load_name(so_far.record->name, figures.name);
    return figures;
}

/// The peaks of which the timeline was told, by the place of the name.
constinit std::atomic<std::uint64_t> told_peaks[count_of<ScopeRecord>] = {};

// A peak that creeps up with every call must not fill the timeline: it is told when it rose by more
// than a sixteenth.
void tell_peak(const ScopeRecord& record, std::uint64_t peak, std::string_view name) noexcept {
    const auto place = &record - records_in<ScopeRecord>(*segment().header());
    // Relaxed: whoever raises it tells.
    std::uint64_t told = told_peaks[place].load(std::memory_order_relaxed);
    while (peak > told + told / 16) {
        if (told_peaks[place].compare_exchange_weak(told, peak, std::memory_order_relaxed)) {
            write_entry(EntryKind::scope, LimitKind::none, peak, name);
            return;
        }
    }
}

// Relaxed: figures, each of its own.
void add_up(const Counted& ended) noexcept {
    ScopeRecord& record = *ended.record;
    const ThreadSums& counted = ended.counted;
    const auto add = [](Counter& sum, std::uint64_t more) {
        if (more != 0) sum.fetch_add(more, std::memory_order_relaxed);
    };
    add(record.deallocations, counted.deallocation_count());
    add(record.deallocated_bytes, counted.deallocated_bytes());
    add(record.allocations, counted.allocation_count());
    add(record.requested_bytes, counted.requested_bytes);
    add(record.allocated_bytes, counted.allocated_bytes());
    add(record.calls, 1);
    base::raise_to(record.peak_bytes, ended.peak);
    char name[Name::bytes];
    if (!ended.in_order) {
        load_name(record.name, name);
        add(record.out_of_order, 1);
        count_failed_check(CheckKind::scope_order, name);
    }
    if (ended.peak != 0) {
        load_name(record.name, name);
        tell_peak(record, ended.peak, name);
    }
}

ScopeGrowth growth_of(const ThreadSums& counted) noexcept {
    ScopeGrowth growth;
    const auto difference = [&](std::uint64_t more, std::uint64_t less) {
        const auto by = static_cast<std::int64_t>(more - less);
        growth.grew = growth.grew || by > 0;
        return by;
    };
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        growth.blocks[bucket] =
            difference(counted.allocations[bucket], counted.deallocations[bucket]);
    }
    growth.large_blocks = difference(counted.large_allocations, counted.large_deallocations);
    growth.large_bytes = difference(counted.large_allocated_bytes, counted.large_deallocated_bytes);
    growth.bytes = difference(counted.allocated_bytes(), counted.deallocated_bytes());
    return growth;
}

}  // namespace
}  // namespace statistics

StatisticsScope::StatisticsScope(std::string_view name) noexcept
    : frame_(statistics::begin_frame(name)) {}

StatisticsScope::~StatisticsScope() {
    if (frame_ == nullptr) return;
    const statistics::Counted ended = statistics::end_frame(*frame_);
    statistics::tell_recorder(TraceAction::scope_end, ended.record);
    if (ended.record != nullptr) statistics::add_up(ended);
}

ScopeGrowth StatisticsScope::growth() const noexcept {
    return frame_ == nullptr ? ScopeGrowth{}
                             : statistics::growth_of(statistics::counted_since(*frame_).counted);
}

ScopeStatistics StatisticsScope::statistics() const noexcept {
    return frame_ == nullptr ? ScopeStatistics{}
                             : statistics::statistics_of(statistics::counted_since(*frame_));
}

}  // namespace tensorpool
