#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/stash_statistics.hpp>

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

}  // namespace tensorpool::stashing
