#include <tensorpool/statistics_scope.hpp>

#include "events/misuse.hpp"
#include "events/recorder_hooks.hpp"
#include "events/timeline.hpp"
#include "limits/budget_node.hpp"
#include "statistics/scopes/counters_of_thread.hpp"

namespace tensorpool {
namespace limits {
namespace {

using statistics::CountersOfThread;
using statistics::Name;
using statistics::ScopeFrame;
using statistics::ScopeRecord;
using statistics::ThreadSums;

constinit std::atomic<void (*)() noexcept> scope_changed = nullptr;  // relaxed: guards nothing

bool has_name(const ScopeRecord& record, const Name& name) noexcept {
    const auto read = [](const statistics::Counter& word) { return base::read(word); };
    return std::ranges::equal(record.name.words, name.words, {}, read, read);
}

/// Finds the record of a scope name. Names are mostly literals, so the record is first looked up by
/// the address of the name.
ScopeRecord* record_of(CountersOfThread& own, std::string_view name) noexcept {
    const std::size_t hash = std::hash<const void*>()(name.data()) / 8;
    ScopeRecord*& known = own.known_names[hash % own.known_names.size()];
    Name wanted{};
    statistics::store_name(wanted, name);
    if (known == nullptr || !has_name(*known, wanted)) {
        known = statistics::segment().find_or_add<ScopeRecord>(name);
        if (known != nullptr) {
            events::name_source(TraceSource::scope, known->id.load(std::memory_order_relaxed),
                                name);
        }
    }
    return known;
}

ScopeFrame* take_frame(CountersOfThread& own) noexcept {
    if (own.free_frames == nullptr) return statistics::free_scope_frames().take();
    return std::exchange(own.free_frames, own.free_frames->next_free);
}

void report_to_recorder(TraceAction action, const ScopeRecord* scope) noexcept {
    if (scope == nullptr || !events::is_recording()) return;
    events::record(action, scope->id.load(std::memory_order_relaxed), nullptr, 0);
}

/// Lets a frame count on the calling thread from here on. REQUIRES: the mutex of the thread's
/// counters is held.
void link(CountersOfThread& own, ScopeFrame& frame) noexcept {
    frame.begin = own.sums();
    frame.begin_net = frame.begin.net_bytes();
    frame.highest = 0;
    frame.is_paused = false;
    frame.owner.store(&own, std::memory_order_relaxed);
    frame.outer = own.innermost.load(std::memory_order_relaxed);
    own.innermost.store(&frame, std::memory_order_relaxed);
}

ScopeFrame* begin_frame(std::string_view name) noexcept {
    CountersOfThread* const own = CountersOfThread::own();
    if (own == nullptr) return nullptr;
    ScopeRecord* const record = record_of(*own, name);
    report_to_recorder(TraceAction::scope_begin, record);
    const std::lock_guard guard(own->mutex);
    ScopeFrame* const frame = take_frame(*own);
    if (frame == nullptr) return nullptr;
    frame->record = record;
    frame->budget = nullptr;
    frame->highest_before_pauses = 0;
    frame->left_by_fork = false;
    link(*own, *frame);
    if (record != nullptr) record->open.fetch_add(1, std::memory_order_relaxed);
    return frame;
}

/// The result of a scope that has ended, or the state of an open one so far.
struct Counted {
    ScopeRecord* record;
    bool in_order = false;  // ended on its own thread and as the innermost
    ThreadSums counted = {};
    std::uint64_t peak = 0;
};

/// Removes a frame from its thread's list and passes on its highest growth and that of the frames
/// inside it to the frame around it. REQUIRES: the mutex of the thread is held.
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

/// Removes a frame of the calling thread from its list and returns what it has counted. REQUIRES:
/// the mutex of the thread's counters is held.
ThreadSums unlink_own(CountersOfThread& own, ScopeFrame& frame) noexcept {
    ThreadSums counted = own.sums();
    own.innermost.load(std::memory_order_relaxed)->raise(counted.net_bytes());
    counted.subtract(frame.begin);
    unlink(own, frame);
    return counted;
}

/// Ends a frame of the calling thread. REQUIRES: the mutex of the thread's counters is held.
void end_own_frame(CountersOfThread& own, ScopeFrame& frame, Counted& ended) noexcept {
    ended.in_order = own.innermost.load(std::memory_order_relaxed) == &frame;
    ended.counted = unlink_own(own, frame);
    ended.peak = frame.peak();
    frame.next_free = std::exchange(own.free_frames, &frame);
}

/// Counts the scope as closed. Called under the owner's mutex, if there is an owner. A fork takes
/// that mutex, so it finds the scope either open and counted as open, or neither.
void count_closed(const ScopeFrame& frame) noexcept {
    if (frame.record == nullptr || frame.left_by_fork) return;
    frame.record->open.fetch_sub(1, std::memory_order_relaxed);
}

Counted end_frame(ScopeFrame& frame) noexcept {
    Counted ended{.record = frame.record};
    // Acquire pairs with the store in CountersOfThread::leave: after it no other thread accesses
    // the frame.
    while (CountersOfThread* const owner = frame.owner.load(std::memory_order_acquire)) {
        const std::lock_guard guard(owner->mutex);
        if (frame.owner.load(std::memory_order_relaxed) != owner) continue;
        count_closed(frame);
        if (owner == statistics::own_counters_of_thread) {
            end_own_frame(*owner, frame, ended);
            return ended;
        }
        unlink(*owner, frame);
        break;
    }
    if (frame.owner.load(std::memory_order_relaxed) == nullptr) count_closed(frame);
    if (frame.is_paused) {
        ended.in_order = true;
        ended.counted = frame.begin;
        ended.peak = frame.peak();
    }
    statistics::free_scope_frames().give_back(frame);
    return ended;
}

/// Returns the peak of an open frame, including the frames inside it and the current sums of its
/// thread. REQUIRES: the mutex of the thread is held.
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
    seen.highest_before_pauses = frame.highest_before_pauses;
    return seen.peak();
}

/// Returns what the frame has counted; empty if its thread has ended.
Counted counted_since(const ScopeFrame& frame) noexcept {
    Counted so_far{.record = frame.record};
    while (CountersOfThread* const owner = frame.owner.load(std::memory_order_acquire)) {
        const std::lock_guard guard(owner->mutex);
        if (frame.owner.load(std::memory_order_relaxed) != owner) continue;
        so_far.counted = owner->sums();
        so_far.peak = peak_so_far(*owner, frame, so_far.counted);
        so_far.counted.subtract(frame.begin);
        return so_far;
    }
    if (frame.is_paused) {
        so_far.counted = frame.begin;
        so_far.peak = frame.peak();
    }
    return so_far;
}

void charge(ScopeFrame& frame) noexcept {
    frame.outer_budget = scope_budget;
    change_scope(frame.budget);
}
void begin_charging(ScopeFrame& frame, std::string_view name) noexcept {
    read_named_budgets();
    BudgetNode* const budget = find_named_budget(BudgetSubject::scope, name);
    if (budget == nullptr) return;
    frame.budget = budget;
    charge(frame);
}

// A scope inside that ends later returns to the budget outside of this one. What a thread charges,
// only that thread can change.
void end_charging(ScopeFrame& frame) noexcept {
    CountersOfThread* const own = statistics::own_counters_of_thread;
    if (own == nullptr || frame.owner.load(std::memory_order_relaxed) != own) return;
    BudgetNode* now = frame.outer_budget;
    {
        const std::lock_guard guard(own->mutex);
        ScopeFrame* inner = nullptr;
        for (ScopeFrame* one = own->innermost.load(std::memory_order_relaxed); one != &frame;
             one = one->outer) {
            if (one->budget != nullptr) inner = one;
        }
        if (inner != nullptr) inner->outer_budget = std::exchange(now, scope_budget);
    }
    change_scope(now);
}

void pause(ScopeFrame& frame) noexcept {
    CountersOfThread* const own = statistics::own_counters_of_thread;
    if (own == nullptr || frame.owner.load(std::memory_order_relaxed) != own) return;
    if (frame.budget != nullptr) end_charging(frame);
    {
        const std::lock_guard guard(own->mutex);
        frame.begin = unlink_own(*own, frame);
        frame.highest_before_pauses = static_cast<std::int64_t>(frame.peak());
        frame.is_paused = true;
        frame.owner.store(nullptr, std::memory_order_release);
    }
    report_to_recorder(TraceAction::scope_end, frame.record);
}

void resume(ScopeFrame& frame) noexcept {
    if (frame.owner.load(std::memory_order_relaxed) != nullptr || !frame.is_paused) return;
    CountersOfThread* const own = CountersOfThread::own();
    if (own == nullptr) return;
    report_to_recorder(TraceAction::scope_begin, frame.record);
    {
        const std::lock_guard guard(own->mutex);
        const ThreadSums so_far = frame.begin;
        link(*own, frame);
        frame.begin.subtract(so_far);
        frame.begin_net -= so_far.net_bytes();
        frame.highest = static_cast<std::int64_t>(so_far.net_bytes());
    }
    if (frame.budget != nullptr) charge(frame);
}

ScopeStatistics statistics_of(const Counted& so_far) noexcept {
    const ThreadSums& counted = so_far.counted;
    ScopeStatistics statistics{.open = 1,
                               .allocations = counted.allocation_count(),
                               .deallocations = counted.deallocation_count(),
                               .requested_bytes = counted.requested_bytes,
                               .allocated_bytes = counted.allocated_bytes(),
                               .deallocated_bytes = counted.deallocated_bytes(),
                               .peak_bytes = so_far.peak};
    if (so_far.record != nullptr) statistics::load_name(so_far.record->name, statistics.name);
    return statistics;
}

/// The peaks that were written to the timeline, by the index of the scope's record.
constinit std::atomic<std::uint64_t> reported_peaks[statistics::count_of<ScopeRecord>] = {};

// A peak that rises slowly with every call must not fill the timeline. It is written only if it
// rose by more than a sixteenth.
void report_peak(const ScopeRecord& record, std::uint64_t peak, std::string_view name) noexcept {
    // Relaxed: each thread finds the same, which never moves.
    static constinit std::atomic<const ScopeRecord*> first = nullptr;
    if (first.load(std::memory_order_relaxed) == nullptr) [[unlikely]]
        first.store(statistics::segment().other<ScopeRecord>(), std::memory_order_relaxed);
    const auto index = &record - first.load(std::memory_order_relaxed);
    // Relaxed: the thread that raises the value writes the entry.
    std::uint64_t reported = reported_peaks[index].load(std::memory_order_relaxed);
    while (peak > reported + reported / 16) {
        if (reported_peaks[index].compare_exchange_weak(reported, peak,
                                                        std::memory_order_relaxed)) {
            events::write_entry(EntryKind::scope, LimitKind::none, peak, name);
            return;
        }
    }
}

// Relaxed: the sums are independent of each other.
void add_up(const Counted& ended) noexcept {
    ScopeRecord& record = *ended.record;
    const ThreadSums& counted = ended.counted;
    const auto add = [](statistics::Counter& sum, std::uint64_t more) {
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
        statistics::load_name(record.name, name);
        add(record.out_of_order, 1);
        events::count_failed_check(statistics::CheckKind::scope_order, name);
    }
    if (ended.peak != 0) {
        statistics::load_name(record.name, name);
        report_peak(record, ended.peak, name);
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

constinit thread_local BudgetNode* scope_budget TENSORPOOL_INITIAL_EXEC = nullptr;

void change_scope(BudgetNode* now) noexcept {
    scope_budget = now;
    if (const auto changed = scope_changed.load(std::memory_order_relaxed)) changed();
}

void set_scope_hook(void (*changed)() noexcept) noexcept {
    scope_changed.store(changed, std::memory_order_relaxed);
}

}  // namespace limits

void statistics::forget_open_scopes() noexcept {
    limits::scope_budget = nullptr;
}

BudgetScope::BudgetScope(Budget& budget) noexcept
    : node_(budget.node_), outer_(limits::scope_budget) {
    node_->hold();
    if (outer_ != nullptr) outer_->hold();  // scopes of bindings may end in another order
    limits::change_scope(node_);
}

BudgetScope::~BudgetScope() {
    limits::change_scope(outer_);
    if (outer_ != nullptr) outer_->let_go();
    node_->let_go();
}

StatisticsScope::StatisticsScope(std::string_view name) noexcept
    : frame_(limits::begin_frame(name)) {
    // Pairs with the store when the file of budgets was read. None: this is the only cost.
    if (limits::named_budgets.load(std::memory_order_acquire) != limits::NamedBudgets::none &&
        frame_ != nullptr) [[unlikely]] {
        limits::begin_charging(*frame_, name);
    }
}

StatisticsScope::~StatisticsScope() {
    if (frame_ == nullptr) return;
    if (frame_->budget != nullptr) [[unlikely]]
        limits::end_charging(*frame_);
    const limits::Counted ended = limits::end_frame(*frame_);
    limits::report_to_recorder(TraceAction::scope_end, ended.record);
    if (ended.record != nullptr) limits::add_up(ended);
}

void StatisticsScope::pause() noexcept {
    if (frame_ != nullptr) limits::pause(*frame_);
}

void StatisticsScope::resume() noexcept {
    if (frame_ != nullptr) limits::resume(*frame_);
}

ScopeGrowth StatisticsScope::growth() const noexcept {
    return frame_ == nullptr ? ScopeGrowth{}
                             : limits::growth_of(limits::counted_since(*frame_).counted);
}

ScopeStatistics StatisticsScope::statistics() const noexcept {
    return frame_ == nullptr ? ScopeStatistics{}
                             : limits::statistics_of(limits::counted_since(*frame_));
}

}  // namespace tensorpool
