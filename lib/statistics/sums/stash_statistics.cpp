#include "statistics/sums/stash_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {
namespace {

// Another process may have overwritten it.
StashStatistics::Kind kind_of(const StashRecord& record) noexcept {
    using Kind = StashStatistics::Kind;
    const std::uint64_t kind = read(record.kind);
    return kind <= static_cast<std::uint64_t>(Kind::frozen) ? static_cast<Kind>(kind)
                                                            : Kind::stashes;
}

StashStatistics statistics_of(const StashRecord& record) noexcept {
    StashStatistics statistics;
    statistics.id = read(record.id);
    statistics.kind = kind_of(record);
    statistics.budget = read(record.budget);
    load_name(record.name, statistics.name);
    add_counters(statistics, record.totals, Reading::second);
    return statistics;
}

}  // namespace

std::vector<StashStatistics> stashes_in(const SegmentImage& image) {
    std::vector<StashStatistics> stashes;
    std::vector<std::uint64_t> budgets;
    for (const BudgetRecord& budget : image.records<BudgetRecord>()) {
        if (read(budget.id) != 0) budgets.push_back(read(budget.id));
    }
    std::ranges::sort(budgets);
    const auto is_over = [&](const StashStatistics& stash) {
        return stash.kind != StashStatistics::Kind::map && stash.tensors == 0 &&
               stash.budget != 0 && !std::ranges::binary_search(budgets, stash.budget);
    };
    // The first record is for those without one, of which nothing is known.
    for (const StashRecord& record : image.records<StashRecord>()) {
        if (&record == image.records<StashRecord>().data() || read(record.id) == 0) continue;
        const StashStatistics stash = statistics_of(record);
        if (!is_over(stash)) stashes.push_back(stash);
    }
    std::ranges::sort(stashes, {}, &StashStatistics::id);
    return stashes;
}

}  // namespace tensorpool::statistics
