#include "limits/budget_counters.hpp"

#include "statistics/records/record_values.hpp"

namespace tensorpool::limits {
namespace {

void set(detail::Counter& counter, std::size_t value) noexcept {
    counter.store(value, std::memory_order_relaxed);
}

}  // namespace

bool BudgetCounters::open(std::string_view name, const BudgetCounters* parent,
                          BudgetLimits limits) noexcept {
    record_.emplace(name, [&](statistics::BudgetRecord& record) {
        if (parent != nullptr) set(record.parent, value_of((*parent->record_)->id));
        set(record.totals.soft_bytes, limits.soft);
        set(record.totals.hard_bytes, limits.hard);
    });
    if (!*record_) record_.reset();
    return !is_ended();
}

void BudgetCounters::end() noexcept {
    set(ended_.in_use_bytes, in_use());
    record_->leave();
    record_.reset();
}

std::size_t BudgetCounters::limit(bool may_pass_soft) const noexcept {
    if (is_ended()) return SIZE_MAX;
    const std::size_t soft = value_of(totals().soft_bytes);
    if (soft != 0 && !may_pass_soft) return soft;
    const std::size_t hard = value_of(totals().hard_bytes);
    return hard == 0 ? SIZE_MAX : hard;
}

void BudgetCounters::set_limits(BudgetLimits limits) noexcept {
    set(totals().soft_bytes, limits.soft);
    set(totals().hard_bytes, limits.hard);
}

BudgetStatistics BudgetCounters::statistics() const noexcept {
    return record_ ? statistics::statistics_of(**record_) : BudgetStatistics();
}

}  // namespace tensorpool::limits
