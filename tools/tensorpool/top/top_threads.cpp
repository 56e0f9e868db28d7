#include <algorithm>

#include "common/cells.hpp"
#include "top/top_tables.hpp"

namespace tensorpool::command {
namespace {

std::string pool_name(const ProcessSnapshot& snapshot, std::uint64_t pool) {
    const auto found =
        std::ranges::find_if(snapshot.pools, [&](const PoolStatistics& p) { return p.id == pool; });
    return found == snapshot.pools.end() ? "?" : found->name;
}

/// Returns the same thread in another snapshot, or nullptr.
const ThreadStatistics* find(const ProcessSnapshot& snapshot, const ThreadStatistics& thread) {
    const auto found = std::ranges::find_if(snapshot.threads, [&](const ThreadStatistics& other) {
        return other.thread == thread.thread && other.pool == thread.pool;
    });
    return found == snapshot.threads.end() ? nullptr : &*found;
}

double rate(std::uint64_t older, std::uint64_t newer, double seconds) {
    return newer <= older || seconds <= 0 ? 0 : static_cast<double>(newer - older) / seconds;
}

struct Rates {
    double allocations = 0;
    double deallocations = 0;
};

Rates rates_of(const WatchedProcess& watched, const ThreadStatistics& thread) {
    if (!watched.before || watched.before->time_ns >= watched.now->time_ns) return {};
    const ThreadStatistics* const older = find(*watched.before, thread);
    if (older == nullptr) return {};
    const double seconds =
        static_cast<double>(watched.now->time_ns - watched.before->time_ns) * 1e-9;
    return {rate(older->allocations, thread.allocations, seconds),
            rate(older->deallocations, thread.deallocations, seconds)};
}

std::string name_of(const ThreadStatistics& thread) {
    return thread.thread == 0 ? "(ended)" : thread.name;
}

}  // namespace

Table threads_table(const TopData& data, std::uint64_t pool, Sizes sizes) {
    Table table;
    table.columns = {text_column("THREAD", 15), {"TID", Side::right, 7}, text_column("POOL", 12),
                     count_column("ALLOC/s"),   count_column("FREE/s"),  size_column("PARKED"),
                     size_column("HIGHEST"),    count_column("ALLOCS"),  count_column("FREES")};
    if (!data.chosen || !data.chosen->now) return table;
    const ProcessSnapshot& snapshot = *data.chosen->now;
    for (const ThreadStatistics& thread : snapshot.threads) {
        if (pool != 0 && thread.pool != pool) continue;
        const Rates rates = rates_of(*data.chosen, thread);
        table.rows.push_back(
            {text_cell(name_of(thread)), number_cell(thread.thread),
             text_cell(pool_name(snapshot, thread.pool)), count_cell(rates.allocations),
             count_cell(rates.deallocations), size_cell(thread.parked_bytes, sizes),
             size_cell(data.highest.get(thread_key(thread.thread, thread.pool)), sizes),
             count_cell(thread.allocations), count_cell(thread.deallocations)});
        table.keys.push_back(thread_key(thread.thread, thread.pool));
    }
    return table;
}

}  // namespace tensorpool::command
