// What is done for all pools of the process.

#include <algorithm>

#include "blocks/marked_set.hpp"
#include "kinds/block_server.hpp"
#include "kinds/free_memory.hpp"
#include "limits/ladder.hpp"
#include "limits/scope_budget.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

// A request from another process is served by the next call of any thread. That thread may hold a
// lock that another pool's callback takes, so no callback runs here.
std::size_t trim_all_pools() noexcept {
    const kinds::QuietEvents quiet;
    std::size_t bytes = 0;
    pool_list().visit([&](Pool& pool) { bytes += pool.trim(); });
    return bytes;
}

// The caller's request may belong to another pool or an arena, so no callback runs here either.
std::size_t give_free_memory_of_pools(const BudgetNode& budget, std::size_t bytes) noexcept {
    const kinds::QuietEvents quiet;
    const std::size_t before = budget.in_use();
    std::size_t given = 0;
    pool_list().visit([&](Pool& pool) {
        if (given >= bytes) return;
        pool.give_free_memory(budget, bytes - given);
        given = before - std::min(before, budget.in_use());
    });
    return given;
}

void watch_budgets() noexcept {
    limits::set_scope_hook(blocks::scope_changed);
    kinds::set_rungs();
    static constexpr limits::Rung pools{
        "free memory of pools", [](limits::Lack& lack) noexcept {
            const BudgetNode* const budget = lack.budget;
            return budget == nullptr ? 0 : give_free_memory_of_pools(*budget, lack.bytes);
        }};
    limits::ladder().set(kinds::rung_count, pools);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
