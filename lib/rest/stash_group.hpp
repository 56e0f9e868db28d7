#pragma once

#include "rest/stash_table.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::stashing {

/// The counters of what rests under one name. They lie in the segment, or in private memory if it
/// has no record left.
class StashWords {
public:
    StashWords(StashStatistics::Kind kind, std::string_view name, std::uint64_t budget) noexcept
        : record_(name, [&](statistics::StashRecord& record) {
              record.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
              record.budget.store(budget, std::memory_order_relaxed);
          }) {}

    statistics::StashTotals& totals() noexcept { return record_ ? record_->totals : unseen_; }

private:
    statistics::OwnedRecord<statistics::StashRecord> record_;
    statistics::StashTotals unseen_;  // if there is no memory for a record
};

struct SharedWords;

/// A use of the counters that all stashes, or all frozen blocks, of one name and one budget share.
///
/// Counters stay after their last user, until another name needs them. There are 255, and one more
/// named "other" for names that find none. Thread-safe; only the constructor takes a lock.
class StashGroup {
public:
    /// `budget` is the number of the one that is charged; 0 for none.
    StashGroup(StashStatistics::Kind kind, std::string_view name, std::uint64_t budget) noexcept
        : words_(use(kind, name, budget)) {}
    ~StashGroup();
    StashGroup(const StashGroup&) = delete;
    StashGroup& operator=(const StashGroup&) = delete;

    statistics::StashTotals& totals() const noexcept;

private:
    static SharedWords& use(StashStatistics::Kind kind, std::string_view name,
                            std::uint64_t budget) noexcept;

    SharedWords& words_;
};

// Around forks.
void lock_stash_groups() noexcept;
void unlock_stash_groups() noexcept;

}  // namespace tensorpool::stashing
