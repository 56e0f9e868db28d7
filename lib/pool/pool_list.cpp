#include "blocks/marked_set.hpp"
#include "kinds/block_server.hpp"
#include "kinds/free_memory.hpp"
#include "limits/ladder.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

// The innermost of the calling thread's nested visits.
constinit thread_local const OwnVisit* innermost TENSORPOOL_INITIAL_EXEC = nullptr;

}  // namespace

OwnVisit::OwnVisit(const Pool& pool) noexcept : pool_(pool), outer_(innermost) {
    innermost = this;
}

OwnVisit::~OwnVisit() {
    innermost = outer_;
}

unsigned OwnVisit::count(const Pool& pool) noexcept {
    unsigned visits = 0;
    for (const OwnVisit* visit = innermost; visit != nullptr; visit = visit->outer_) {
        if (&visit->pool_ == &pool) ++visits;
    }
    return visits;
}

void PoolList::enter(Pool& pool) noexcept {
    const std::lock_guard guard(mutex_);
    base::link_in_front(first_, pool);
}

void PoolList::leave(Pool& pool) noexcept {
    for (;;) {
        // Pairs with the release in `next_visit`, where a visit ends.
        const std::uint32_t ended = ended_visits_.load(std::memory_order_acquire);
        if (try_leave(pool)) return;
        ended_visits_.wait(ended, std::memory_order_relaxed);
    }
}

bool PoolList::try_leave(Pool& pool) noexcept {
    const std::lock_guard guard(mutex_);
    if (pool.visits > OwnVisit::count(pool)) return false;
    base::unlink(first_, pool);
    return true;
}

void PoolList::forget_visits() noexcept {
    for (Pool* pool = first_; pool != nullptr; pool = pool->next) {
        pool->visits = OwnVisit::count(*pool);
    }
}

Pool* PoolList::next_visit(Pool& pool) noexcept {
    Pool* next = nullptr;
    {
        const std::lock_guard guard(mutex_);
        next = begin_visit(pool.next);
        --pool.visits;
    }
    ended_visits_.fetch_add(1, std::memory_order_release);
    ended_visits_.notify_all();
    return next;
}

Pool* PoolList::begin_visit(Pool* pool) noexcept {
    if (pool != nullptr) ++pool->visits;
    return pool;
}

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
            if (lack.kept != nullptr) return std::size_t{0};
            return lack.budget == nullptr ? trim_all_pools()
                                          : give_free_memory_of_pools(*lack.budget, lack.bytes);
        }};
    limits::ladder().set(kinds::rung_count, pools);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
