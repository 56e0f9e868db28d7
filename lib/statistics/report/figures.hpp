#pragma once

#include <cstdint>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/planned_arena_statistics.hpp>
#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/scope_statistics.hpp>
#include <tensorpool/statistics.hpp>

/// Every figure, once: its name, where it stands, its unit, its kind and what it says. JSON,
/// metrics and the manual are made from these tables.
namespace tensorpool::statistics {

enum class FigureKind : std::uint8_t {
    gauge,  // goes up and down
    total,  // only grows
    peak,   // the highest so far
};

template <class Statistics>
struct Figure {
    const char* name;
    std::uint64_t Statistics::*value;
    const char* unit;
    FigureKind kind;
    const char* sentence;
    const char* pytorch = "";  // its word there, where it has one
};

// For one line a figure below.
inline constexpr FigureKind gauge = FigureKind::gauge;
inline constexpr FigureKind total = FigureKind::total;
inline constexpr FigureKind peak = FigureKind::peak;

using Process = ProcessSnapshot;
inline constexpr Figure<Process> process_figures[] = {
    {"committed_bytes", &Process::committed_bytes, "bytes", gauge,
     "Committed by all pools, arenas, scratches and planned arenas of the process."},
    {"minor_faults", &Process::minor_faults, "faults", total,
     "Minor page faults of the whole process, as the system counts them."},
    {"resident_bytes", &Process::resident_bytes, "bytes", gauge,
     "Of the whole process in memory, as the system counts it."},
    {"failed_misuse", &Process::failed_misuse, "checks", total,
     "Checks that fired at a pointer or a size that does not fit."},
    {"failed_leaks", &Process::failed_leaks, "checks", total,
     "Checks that fired at blocks left when a pool with checks went."},
    {"failed_threads", &Process::failed_threads, "checks", total,
     "Checks that fired when another thread used what belongs to one."},
    {"failed_scope_orders", &Process::failed_scope_orders, "checks", total,
     "Statistics scopes that ended out of order."},
};

using Pool = PoolStatistics;
inline constexpr Figure<Pool> pool_figures[] = {
    {"id", &Pool::id, "number", gauge, "Unlike that of any other pool or arena of the process."},
    {"in_use_bytes", &Pool::in_use_bytes, "bytes", gauge, "Of blocks that callers hold."},
    {"capacity_bytes", &Pool::capacity_bytes, "bytes", gauge,
     "Committed memory, free memory included and records not."},
    {"reserved_bytes", &Pool::reserved_bytes, "bytes", gauge,
     "Address space lent to the pool; it takes no memory."},
    {"limit_bytes", &Pool::limit_bytes, "bytes", gauge,
     "How far the capacity may grow; 0 without a limit."},
    {"peak_in_use_bytes", &Pool::peak_in_use_bytes, "bytes", peak,
     "The most bytes in use at once, with what thread caches parked at that time."},
    {"peak_capacity_bytes", &Pool::peak_capacity_bytes, "bytes", peak, "The largest capacity."},
    {"peak_reserved_bytes", &Pool::peak_reserved_bytes, "bytes", peak,
     "The most address space lent to the pool."},
    {"requested_bytes", &Pool::requested_bytes, "bytes", total,
     "Asked for by all allocations, counted at allocation."},
    {"allocated_bytes", &Pool::allocated_bytes, "bytes", total,
     "Handed out by all allocations; what exceeds the requested bytes is rounding."},
    {"allocations", &Pool::allocations, "calls", total, "Blocks handed out."},
    {"deallocations", &Pool::deallocations, "calls", total, "Blocks that came back."},
    {"cache_hits", &Pool::cache_hits, "calls", total,
     "Allocations served by a thread's magazines or the large-block cache."},
    {"cache_misses", &Pool::cache_misses, "calls", total, "All other allocations."},
    {"failures", &Pool::failures, "calls", total, "Requests that could not be met."},
    {"system_misses", &Pool::system_misses, "calls", total,
     "Allocations for which the pool had to grow."},
    {"parked_bytes", &Pool::parked_bytes, "bytes", gauge, "Free, in the magazines of threads."},
    {"depot_bytes", &Pool::depot_bytes, "bytes", gauge, "Free, in magazines that no thread holds."},
    {"span_bytes", &Pool::span_bytes, "bytes", gauge, "Free, in the spans of buckets."},
    {"cached_bytes", &Pool::cached_bytes, "bytes", gauge, "Free, in the large-block cache."},
    {"free_bytes", &Pool::free_bytes, "bytes", gauge,
     "Free and committed, in runs of whole pages."},
    {"lost_bytes", &Pool::lost_bytes, "bytes", gauge, "Parked by threads that a fork left behind."},
    {"record_bytes", &Pool::record_bytes, "bytes", gauge,
     "The pool's own records, which are not part of its capacity."},
    {"growths", &Pool::growths, "times", total, "Times that memory was committed."},
    {"grown_bytes", &Pool::grown_bytes, "bytes", total, "Memory committed by all growths."},
    {"give_backs", &Pool::give_backs, "times", total,
     "Times that memory was given back to the system."},
    {"given_back_bytes", &Pool::given_back_bytes, "bytes", total,
     "Memory given back to the system."},
    {"threads", &Pool::threads, "threads", gauge, "Threads that have a cache for this pool."},
};

using Bucket = BucketStatistics;
inline constexpr Figure<Bucket> bucket_figures[] = {
    {"block_bytes", &Bucket::block_bytes, "bytes", gauge, "Size of a block."},
    {"in_use_bytes", &Bucket::in_use_bytes, "bytes", gauge, "Of blocks that callers hold."},
    {"parked_bytes", &Bucket::parked_bytes, "bytes", gauge, "Free, in the magazines of threads."},
    {"capacity_bytes", &Bucket::capacity_bytes, "bytes", gauge,
     "Of the spans that the bucket holds."},
    {"allocations", &Bucket::allocations, "calls", total, "Blocks handed out."},
    {"deallocations", &Bucket::deallocations, "calls", total, "Blocks that came back."},
    {"requested_bytes", &Bucket::requested_bytes, "bytes", total, "Asked for."},
    {"allocated_bytes", &Bucket::allocated_bytes, "bytes", total, "Handed out for it."},
    {"cache_hits", &Bucket::cache_hits, "calls", total,
     "Allocations that the thread's magazines served."},
    {"cache_misses", &Bucket::cache_misses, "calls", total,
     "Allocations that went to the depot or to spans."},
    {"depot_hits", &Bucket::depot_hits, "calls", total,
     "Misses that a magazine from the depot served."},
    {"system_misses", &Bucket::system_misses, "calls", total,
     "Misses for which the pool had to grow."},
    {"depot_bytes", &Bucket::depot_bytes, "bytes", gauge,
     "Free, in magazines that no thread holds."},
};

using Large = LargeStatistics;
inline constexpr Figure<Large> large_figures[] = {
    {"in_use_bytes", &Large::in_use_bytes, "bytes", gauge, "Of blocks that callers hold."},
    {"cached_bytes", &Large::cached_bytes, "bytes", gauge, "Free, in the large-block cache."},
    {"allocations", &Large::allocations, "calls", total, "Blocks handed out."},
    {"deallocations", &Large::deallocations, "calls", total, "Blocks that came back."},
    {"requested_bytes", &Large::requested_bytes, "bytes", total, "Asked for."},
    {"allocated_bytes", &Large::allocated_bytes, "bytes", total, "Handed out for it."},
    {"cache_hits", &Large::cache_hits, "calls", total,
     "Allocations that the large-block cache served."},
    {"cache_misses", &Large::cache_misses, "calls", total, "All other allocations."},
    {"system_misses", &Large::system_misses, "calls", total,
     "Misses for which the pool had to grow."},
};

using Arena = ArenaStatistics;
inline constexpr Figure<Arena> arena_figures[] = {
    {"id", &Arena::id, "number", gauge, "Unlike that of any other pool or arena of the process."},
    {"thread", &Arena::thread, "number", gauge,
     "Whose scratch it is, by the system's number; 0 for an arena."},
    {"used_bytes", &Arena::used_bytes, "bytes", gauge,
     "Handed out since the last release below them, alignment included."},
    {"peak_used_bytes", &Arena::peak_used_bytes, "bytes", peak, "The most bytes used at once."},
    {"capacity_bytes", &Arena::capacity_bytes, "bytes", gauge,
     "Committed memory, or the size of the buffer."},
    {"peak_capacity_bytes", &Arena::peak_capacity_bytes, "bytes", peak, "The largest capacity."},
    {"reserved_bytes", &Arena::reserved_bytes, "bytes", gauge,
     "Address space; it takes no memory."},
    {"limit_bytes", &Arena::limit_bytes, "bytes", gauge,
     "How far the capacity may grow; 0 without a limit."},
    {"growths", &Arena::growths, "times", total, "Times that memory was committed."},
    {"grown_bytes", &Arena::grown_bytes, "bytes", total, "Memory committed by all growths."},
    {"give_backs", &Arena::give_backs, "times", total,
     "Times that memory was given back to the system."},
    {"given_back_bytes", &Arena::given_back_bytes, "bytes", total,
     "Memory given back to the system."},
    {"refusals", &Arena::refusals, "calls", total, "Requests that could not be met."},
};

using DeviceFigures = DeviceStatistics;
inline constexpr Figure<DeviceFigures> device_figures[] = {
    {"id", &DeviceFigures::id, "number", gauge,
     "Unlike that of any other pool, arena or device allocator of the process."},
    {"in_use_bytes", &DeviceFigures::in_use_bytes, "bytes", gauge, "Of blocks that callers hold.",
     "allocated_bytes.all.current"},
    {"peak_in_use_bytes", &DeviceFigures::peak_in_use_bytes, "bytes", peak,
     "The most bytes in use at once, with what streams parked at that time.",
     "allocated_bytes.all.peak"},
    {"requested_in_use_bytes", &DeviceFigures::requested_in_use_bytes, "bytes", gauge,
     "Asked for with the blocks that callers hold.", "requested_bytes.all.current"},
    {"deferred_bytes", &DeviceFigures::deferred_bytes, "bytes", gauge,
     "Freed, and held back until streams have passed.", "active_pending_free"},
    {"peak_active_bytes", &DeviceFigures::peak_active_bytes, "bytes", peak,
     "The most bytes in use and deferred at once.", "active_bytes.all.peak"},
    {"capacity_bytes", &DeviceFigures::capacity_bytes, "bytes", gauge,
     "Of all slabs, free memory included.", "reserved_bytes.all.current"},
    {"peak_capacity_bytes", &DeviceFigures::peak_capacity_bytes, "bytes", peak,
     "The largest capacity.", "reserved_bytes.all.peak"},
    {"address_bytes", &DeviceFigures::address_bytes, "bytes", gauge,
     "Address space of slabs that can grow; it takes no memory."},
    {"free_bytes", &DeviceFigures::free_bytes, "bytes", gauge,
     "Of slabs, neither in use nor deferred."},
    {"split_bytes", &DeviceFigures::split_bytes, "bytes", gauge,
     "Free, in slabs that are partly in use.", "inactive_split_bytes.all.current"},
    {"parked_bytes", &DeviceFigures::parked_bytes, "bytes", gauge,
     "Free, in lately freed blocks that are ready for their stream."},
    {"captured_bytes", &DeviceFigures::captured_bytes, "bytes", gauge,
     "Of slabs of graphs, which nobody else gets."},
    {"limit_bytes", &DeviceFigures::limit_bytes, "bytes", gauge,
     "How far the capacity may grow; 0 without a limit."},
    {"soft_limit_bytes", &DeviceFigures::soft_limit_bytes, "bytes", gauge,
     "The capacity from which free blocks are given back; 0 for none."},
    {"slabs", &DeviceFigures::slabs, "slabs", gauge, "Slabs held.", "segment.all.current"},
    {"free_blocks", &DeviceFigures::free_blocks, "blocks", gauge,
     "Free runs of bytes, those parked not included.", "inactive"},
    {"deferred_blocks", &DeviceFigures::deferred_blocks, "blocks", gauge,
     "Blocks freed, and held back until streams have passed.", "active_pending_free"},
    {"streams", &DeviceFigures::streams, "streams", gauge, "Streams that the allocator knows."},
    {"allocations", &DeviceFigures::allocations, "calls", total, "Blocks handed out.",
     "allocation.all.allocated"},
    {"deallocations", &DeviceFigures::deallocations, "calls", total, "Blocks that came back.",
     "allocation.all.freed"},
    {"requested_bytes", &DeviceFigures::requested_bytes, "bytes", total,
     "Asked for by all allocations.", "requested_bytes.all.allocated"},
    {"allocated_bytes", &DeviceFigures::allocated_bytes, "bytes", total,
     "Handed out by all allocations; what exceeds the requested bytes is rounding.",
     "allocated_bytes.all.allocated"},
    {"deallocated_bytes", &DeviceFigures::deallocated_bytes, "bytes", total,
     "Of the blocks that came back.", "allocated_bytes.all.freed"},
    {"parked_hits", &DeviceFigures::parked_hits, "calls", total,
     "Allocations that a block freed lately on their stream served."},
    {"free_hits", &DeviceFigures::free_hits, "calls", total, "Allocations that a free run served."},
    {"growths", &DeviceFigures::growths, "times", total, "Slabs made, or grown.",
     "num_device_alloc"},
    {"grown_bytes", &DeviceFigures::grown_bytes, "bytes", total,
     "Memory that all growths took from the device.", "reserved_bytes.all.allocated"},
    {"give_backs", &DeviceFigures::give_backs, "times", total,
     "Times that memory went back to the device.", "num_device_free"},
    {"given_back_bytes", &DeviceFigures::given_back_bytes, "bytes", total,
     "Memory that went back to the device.", "reserved_bytes.all.freed"},
    {"cross_stream_uses", &DeviceFigures::cross_stream_uses, "calls", total,
     "Times that a stream was said to use a block of another one's."},
    {"events", &DeviceFigures::events, "events", total, "Events recorded on streams."},
    {"synchronizations", &DeviceFigures::synchronizations, "times", total,
     "Times that the allocator waited for the device.", "num_sync_all_streams"},
    {"pressures", &DeviceFigures::pressures, "calls", total,
     "Requests met only after memory had been gathered.", "num_alloc_retries"},
    {"failures", &DeviceFigures::failures, "calls", total, "Requests that could not be met.",
     "num_ooms"},
};

using Planned = PlannedArenaStatistics;
inline constexpr Figure<Planned> planned_figures[] = {
    {"id", &Planned::id, "number", gauge, "Unlike that of any other pool or arena of the process."},
    {"buffers", &Planned::buffers, "buffers", gauge, "Of the plan, or learned so far."},
    {"lower_bound_bytes", &Planned::lower_bound_bytes, "bytes", gauge,
     "The most bytes alive at once in what was learned: no allocator could need less."},
    {"pool_peak_bytes", &Planned::pool_peak_bytes, "bytes", gauge,
     "The most bytes of the pool's blocks that it took at once."},
    {"plan_peak_bytes", &Planned::plan_peak_bytes, "bytes", gauge,
     "What the plan needs; 0 before there is one."},
    {"capacity_bytes", &Planned::capacity_bytes, "bytes", gauge, "Held for the plan."},
    {"in_use_bytes", &Planned::in_use_bytes, "bytes", gauge,
     "In places of the plan that callers hold."},
    {"pool_in_use_bytes", &Planned::pool_in_use_bytes, "bytes", gauge,
     "Of the pool's blocks that callers hold through it."},
    {"iterations", &Planned::iterations, "iterations", total, "Iterations that ended."},
    {"served", &Planned::served, "calls", total, "Requests served from the plan."},
    {"from_pool", &Planned::from_pool, "calls", total,
     "All other requests, those of iterations that it learned from too."},
    {"too_large", &Planned::too_large, "calls", total,
     "Of those, larger than their place in the plan."},
    {"out_of_order", &Planned::out_of_order, "calls", total,
     "Of those, where the plan has another request."},
    {"unknown", &Planned::unknown, "calls", total, "Of those, beyond the end of the plan."},
    {"still_in_use", &Planned::still_in_use, "calls", total,
     "Of those, whose place somebody still held."},
    {"plans", &Planned::plans, "plans", total, "Plans made, or loaded."},
    {"planning_ns", &Planned::planning_ns, "nanoseconds", total, "Spent on making them."},
};

using Scope = ScopeStatistics;
inline constexpr Figure<Scope> scope_figures[] = {
    {"calls", &Scope::calls, "scopes", total, "Scopes of this name that ended."},
    {"open", &Scope::open, "scopes", gauge, "Scopes that began and have not ended."},
    {"allocations", &Scope::allocations, "calls", total, "Blocks handed out in them."},
    {"deallocations", &Scope::deallocations, "calls", total, "Blocks that came back in them."},
    {"requested_bytes", &Scope::requested_bytes, "bytes", total, "Asked for in them."},
    {"allocated_bytes", &Scope::allocated_bytes, "bytes", total, "Handed out for it."},
    {"deallocated_bytes", &Scope::deallocated_bytes, "bytes", total,
     "Of the blocks that came back in them."},
    {"peak_bytes", &Scope::peak_bytes, "bytes", peak,
     "The most by which the bytes in use grew in one of them; may lag by what a thread parks."},
    {"out_of_order", &Scope::out_of_order, "scopes", total,
     "Scopes that ended before one inside them, or on another thread."},
};

using Thread = ThreadStatistics;
inline constexpr Figure<Thread> thread_figures[] = {
    {"thread", &Thread::thread, "number", gauge,
     "The system's number of the thread; 0 for those that ended or have no cache."},
    {"pool", &Thread::pool, "number", gauge, "The pool's id."},
    {"allocations", &Thread::allocations, "calls", total, "Blocks handed out to it."},
    {"deallocations", &Thread::deallocations, "calls", total, "Blocks that it gave back."},
    {"parked_bytes", &Thread::parked_bytes, "bytes", gauge, "Free, in its magazines."},
};

}  // namespace tensorpool::statistics
