#include "limits/ladder.hpp"

#include <algorithm>

#include "limits/budget_holders.hpp"

namespace tensorpool::limits {
namespace {

std::size_t give_of_holders(Lack& lack) noexcept {
    return lack.budget == nullptr ? 0 : ask_holders(*lack.budget, lack.bytes, lack.request);
}

constexpr Rung holders{"holders of budgets", give_of_holders};
constinit Ladder the_ladder(holders);

}  // namespace

Ladder& ladder() noexcept {
    return the_ladder;
}

std::size_t Ladder::climb(Lack& lack) const noexcept {
    std::size_t given = 0;
    for (const std::atomic<const Rung*>& position : rungs_) {
        if (lack.bytes == 0) break;
        const Rung* const rung = position.load(std::memory_order_acquire);
        if (rung == nullptr) continue;
        const std::size_t now = rung->give(lack);
        given += now;
        lack.bytes -= std::min(lack.bytes, now);
    }
    return given;
}

}  // namespace tensorpool::limits
