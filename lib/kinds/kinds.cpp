// The kinds, the routes and the watchers of pools: a new one is added here.

#include "kinds/kinds.hpp"
#include "events/recorder_hooks.hpp"
#include "kinds/watcher.hpp"

namespace tensorpool::kinds {
namespace {

using pages::PageKind;

constexpr Kind small_kind{free_small, find_small, resize_small, recorded_bytes_of_small};
constexpr Kind large_kind{free_pages, find_pages, resize_pages, recorded_bytes_of_pages};
constexpr Kind noted_kind{free_noted, find_pages, resize_pages, recorded_bytes_of_pages};
constexpr Kind served_kind{free_served, find_served, resize_served, recorded_bytes_of_served};
constexpr Kind guarded_kind{free_guarded, find_guarded, always_moves, recorded_bytes_of_guarded};
constexpr Kind marked_kind{free_marked, find_marked, resize_marked, recorded_bytes_of_marked};
constexpr Kind hardened_small_kind{free_hardened_small, find_small, always_moves,
                                   recorded_bytes_of_small};
constexpr Kind hardened_large_kind{free_hardened_pages, find_pages, always_moves,
                                   recorded_bytes_of_pages};

constexpr KindTable table(const Kind& bucket, const Kind& large) noexcept {
    KindTable kinds;
    kinds.set_all(large);
    for (unsigned series = 0; series != base::series_count; ++series) {
        for (unsigned number = 0; number != bucket_count; ++number) {
            kinds.set(pages::kind_of_bucket(number, series), bucket);
        }
    }
    kinds.set(PageKind::large_noted, noted_kind);
    kinds.set(PageKind::served, served_kind);
    kinds.set(PageKind::guarded, guarded_kind);
    kinds.set(PageKind::marked, marked_kind);
    return kinds;
}
constinit KindTable kinds_of_most = table(small_kind, large_kind);
constinit const KindTable kinds_of_hardened = table(hardened_small_kind, hardened_large_kind);

constexpr Route lent{takes_lent, allocate_lent, true};
constexpr Route charged{takes_charged, allocate_charged};
// Others that are added come first.
constexpr unsigned max_added = 4;
constinit Route routes_of_most[max_added + 5] = {{},
                                                 {},
                                                 {},
                                                 {},
                                                 lent,
                                                 charged,
                                                 {takes_finer, allocate_finer},
                                                 {takes_small, allocate_small},
                                                 {takes_any, allocate_large}};
constinit Route* first_of_most = routes_of_most + max_added;
constexpr Route routes_of_hardened[] = {lent, {takes_any, allocate_hardened}};

// A watcher's number is its position. Others that are added follow.
constinit const Watcher* watchers[watch::max_watchers] = {&profile_watcher, &guard_watcher};

// Not inline, so that `record_end_if_recording` saves no registers for it.
[[gnu::noinline]] void record_end(PoolParts& pool, const void* p, PageEntry entry) noexcept {
    if (entry.kind() == PageKind::served) return;  // not recorded as a block of this pool
    // 0 for a pointer that is not a block of this pool, which is reported later.
    const std::size_t bytes = pool.owns(entry) ? pool.kinds.of(entry).recorded_bytes(p, entry) : 0;
    events::record(TraceAction::deallocate, pool.id(), p, bytes);
}

}  // namespace

const KindTable& kinds_for(Checks checks) noexcept {
    return checks == Checks::hardened ? kinds_of_hardened : kinds_of_most;
}

const Route* routes_for(Checks checks) noexcept {
    return checks == Checks::hardened ? routes_of_hardened : first_of_most;
}

void add(pages::PageKind number, const Kind& kind, const Route& route) noexcept {
    kinds_of_most.set(number, kind);
    *--first_of_most = route;
}

void add(const Watcher& watcher) noexcept {
    *std::find(std::begin(watchers), std::end(watchers), nullptr) = &watcher;
}

WatcherSet watchers_of(const PoolParts& pool) noexcept {
    unsigned set = 0;
    for (unsigned number = 0; number != std::size(watchers); ++number) {
        const Watcher* const watcher = watchers[number];
        if (watcher != nullptr && watcher->watches(pool)) set |= 1U << number;
    }
    return static_cast<WatcherSet>(set);
}

const Watcher& watcher_of(unsigned number) noexcept {
    return *watchers[number];
}

Found find(PoolParts& pool, const void* p) noexcept {
    const PageEntry entry = pool.entry(p);
    // A page of another pool is looked up as one without a block.
    return pool.kinds.of(pool.owns(entry) ? entry : PageEntry()).find(pool, p, entry);
}

std::size_t usable_size(PoolParts& pool, const void* p) noexcept {
    const Found found = find(pool, p);
    if (!found.is_block()) return 0;
    // From now on the caller may use all of the block. `mark_open` would first read the records of
    // AddressSanitizer, and that fails if another thread frees the block at the same time.
    if (pool.is_shown_to_tool() &&
        platform::memory_tool() == platform::MemoryTool::address_sanitizer) {
        platform::mark_allocated({p, found.usable, found.usable});
    }
    return pool.is_hardened() && found.requested != 0 ? found.requested : found.usable;
}

void record_end_if_recording(PoolParts& pool, const void* p, PageEntry entry) noexcept {
    events::look_for_recorder();
    if (events::is_recording()) [[unlikely]]
        record_end(pool, p, entry);
}

}  // namespace tensorpool::kinds
