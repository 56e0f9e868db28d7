#include "arena/cancelled_claims.hpp"

namespace tensorpool::arena {

void CancelledClaims::cancel_from(std::size_t from) noexcept {
    const bool goes_on = run_count_ != 0 && run(run_count_ - 1).from == from;
    if (!goes_on) runs_[run_count_++ % max_runs] = {generation_, from};
    ++generation_;
}

bool CancelledClaims::contains(std::uint16_t generation, std::size_t begin) const noexcept {
    const auto since = static_cast<std::uint16_t>(generation_ - generation);
    if (since == 0) return false;
    const std::uint64_t whole = generation_ - since;
    const std::uint64_t oldest = run_count_ > max_runs ? run_count_ - max_runs : 0;
    for (std::uint64_t number = run_count_; number-- > oldest;) {
        if (whole >= run(number).first) return begin >= run(number).from;
    }
    return true;
}

}  // namespace tensorpool::arena
