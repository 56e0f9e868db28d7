// The rows for the memory of pools.
//
// What is free and touched is known from the pools' statistics. The rest of what is resident are
// blocks in use, as far as their owners touched them. The statistics may be damaged, so no row gets
// more than what is left of the resident bytes.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "explain/explanation.hpp"
#include "explain/free_memory.hpp"

namespace tensorpool::command::explain {
namespace {

/// Returns the retention policy of a pool, which is not known of pools without a record.
std::string retention_of(const PoolStatistics& pool) {
    std::string text = "retention period";
    if (pool.id == 0) return text;
    if (pool.retain_ms % 1000 == 0) {
        text += fmt::format(" of {} s", pool.retain_ms / 1000);
    } else {
        text += fmt::format(" of {} ms", pool.retain_ms);
    }
    if (pool.retain_bytes != UINT64_MAX) {
        text += fmt::format(", limit {}", format_size(pool.retain_bytes));
    }
    return text;
}

std::string magazines_of(const PoolStatistics& pool, const std::vector<ThreadStatistics>& threads) {
    const auto count = std::ranges::count_if(threads, [&](const ThreadStatistics& thread) {
        return thread.pool == pool.id && thread.parked_bytes != 0;
    });
    return fmt::format("for the next requests of {} thread{}", count, count == 1 ? "" : "s");
}

class PoolRows {
public:
    PoolRows(Explanation& to, const ProcessSnapshot& snapshot, std::uint64_t resident)
        : to_(to), snapshot_(snapshot), resident_(resident), left_(resident) {
        for (const PoolStatistics& pool : snapshot.pools) {
            free_bytes_ = sum(free_bytes_, FreeMemory(pool).all());
            in_use_bytes_ = sum(in_use_bytes_, pool.in_use_bytes);
        }
        for (const PlannedArenaStatistics& arena : snapshot.planned) {
            in_use_bytes_ = sum(in_use_bytes_, arena.capacity_bytes);
        }
    }

    void make() {
        const std::uint64_t touched = above(resident_, free_bytes_);
        const double of_in_use = std::min(ratio(touched, in_use_bytes_), 1.0);
        const double of_free = std::min(ratio(resident_, free_bytes_), 1.0);
        for (const PoolStatistics& pool : snapshot_.pools) {
            add_in_use(pool, of_in_use);
            add_free(pool, of_free);
        }
        for (const PlannedArenaStatistics& arena : snapshot_.planned) {
            add({.what = fmt::format("planned arena '{}': its plan", arena.name),
                 .bytes = times(arena.capacity_bytes, of_in_use)});
        }
        add({.what = "pools: pages that the system filled, and calls under way", .bytes = left_});
    }

private:
    void add_in_use(const PoolStatistics& pool, double touched) {
        const double rounding =
            ratio(above(pool.allocated_bytes, pool.requested_bytes), pool.allocated_bytes);
        const std::uint64_t bytes = times(pool.in_use_bytes, touched);
        const std::uint64_t surplus = times(bytes, rounding);
        to_.in_use.bytes += add(
            {.what = fmt::format("pool '{}': blocks in use", pool.name), .bytes = bytes - surplus});
        to_.in_use.requested_bytes =
            sum(to_.in_use.requested_bytes, times(pool.in_use_bytes, 1 - rounding));
        add({.what = fmt::format("pool '{}': rounding of these blocks, on average", pool.name),
             .bytes = surplus});
    }

    void add_free(const PoolStatistics& pool, double touched) {
        const FreeMemory free(pool);
        const std::string trim = fmt::format("tensorpool trim --pid {}", snapshot_.process);
        const std::string retention = retention_of(pool);
        const auto add_kept = [&](const char* what, std::uint64_t bytes, std::uint64_t back,
                                  const std::string& why) {
            add({fmt::format("pool '{}': {}", pool.name, what), times(bytes, touched),
                 times(back, touched), why, back == 0 ? "" : trim});
        };
        add_kept("free pages that `reserve` prepared", free.prepared, free.prepared,
                 "until a trim");
        add_kept("free pages", free.pages, free.pages, retention);
        add_kept("free large blocks in the cache", free.cached, free.cached, retention);
        add_kept("free blocks parked by threads", free.parked, free.parked_back,
                 magazines_of(pool, snapshot_.threads));
        add_kept("free small blocks in depots", free.depot, free.depot_back, retention);
        add_kept("free small blocks on pages of their own", free.spans, free.spans,
                 "spans that have blocks in use");
        add_kept("free small blocks beside blocks in use", free.pinned, 0,
                 "blocks in use or parked on the same pages");
        add_kept("freed blocks in the quarantine, or lost by a fork", free.waiting, 0, "");
    }

    /// Returns the bytes of the row.
    std::uint64_t add(Row row) {
        row.bytes = std::min(row.bytes, left_);
        row.back_bytes = std::min(row.back_bytes, row.bytes);
        left_ -= row.bytes;
        const std::uint64_t bytes = row.bytes;
        if (bytes != 0) to_.rows.push_back(std::move(row));
        return bytes;
    }

    Explanation& to_;
    const ProcessSnapshot& snapshot_;
    const std::uint64_t resident_;
    std::uint64_t left_;  // without a row yet
    std::uint64_t free_bytes_ = 0;
    std::uint64_t in_use_bytes_ = 0;
};

}  // namespace

void add_pools(Explanation& to, const ProcessSnapshot& snapshot, std::uint64_t resident) {
    PoolRows(to, snapshot, resident).make();
}

}  // namespace tensorpool::command::explain
