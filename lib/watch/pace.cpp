#include "watch/pace.hpp"

#include <utility>

namespace tensorpool::watch {
namespace {

constexpr double kept = 0.75;
// A thread may wait, or work without pools, for hours; and free the blocks of many others.
constexpr double max_elapsed_ns = 1e9;
constexpr double max_debt_ns = 1e9;
// Beyond it, blocks take more than the share. Only requests for blocks that are not touched come so
// fast.
constexpr double max_mean = 0x1p36;

constinit SharedPace the_process_pace;

double average(double mean, double value) noexcept {
    return (7 * mean + value) / 8;
}

}  // namespace

SharedPace& process_pace() noexcept {
    return the_process_pace;
}

void Pace::look(std::uint64_t now) noexcept {
    const std::uint64_t before = std::exchange(looked_, now);
    const double passed = std::exchange(passed_, 0);
    has_looked_ = true;
    if (now <= before) return;
    const double elapsed = std::min(static_cast<double>(now - before), max_elapsed_ns);
    bytes_ = kept * bytes_ + passed;
    time_ = kept * time_ + elapsed;
    const double more = std::min(4 * elapsed, more_at_first_ns_);
    more_at_first_ns_ -= more;
    for (Account& account : accounts_) account.saved_ns += elapsed + more;
    const double known = shared_->rate.load(std::memory_order_relaxed);
    shared_->rate.store(std::max(bytes_ / time_, kept * known), std::memory_order_relaxed);
}

void Pace::count(unsigned watcher, const Terms& terms, double cost_ns) noexcept {
    Account& account = accounts_[watcher];
    account.saved_ns -= cost_ns / terms.share;
    account.cost_ns = average(cost_of(account, terms), cost_ns);
}

void Pace::count_free(unsigned watcher, double cost_ns) noexcept {
    Account& account = accounts_[watcher];
    if (account.share == 0) return;
    account.saved_ns -= cost_ns / account.share;
    account.free_cost_ns = average(account.free_cost_ns, cost_ns);
}

void Pace::set(Distance& distance, unsigned watcher, const Terms& terms, double least) noexcept {
    Account& account = accounts_[watcher];
    const double time = time_of_block(account, terms);
    account.share = terms.share;
    account.saved_ns = std::clamp(account.saved_ns, -max_debt_ns,
                                  std::max(terms.max_saved * time, account.wanted_ns));
    const double need = std::max(1 - account.saved_ns / (terms.enough * time), terms.haste);
    const double rate = time_ != 0 ? bytes_ / time_ : shared_->rate.load(std::memory_order_relaxed);
    distance.mean = std::max(std::min(rate * time * need, max_mean), least);
    distance.left = random_.next(distance.mean);
    // Distances have no memory: one that is cut short is as random as any other.
    if (has_looked_ || distance.left <= look_after_bytes) return;
    distance = {.left = look_after_bytes};
}

}  // namespace tensorpool::watch
