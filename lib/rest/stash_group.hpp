#pragma once

#include <optional>

#include "base/never_destroyed.hpp"
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

struct SharedWords {
    std::atomic<std::uint32_t> users = 0;  // more only under the lock
    StashStatistics::Kind kind = StashStatistics::Kind::stashes;
    std::uint64_t budget = 0;
    char name[48] = {};
    std::optional<StashWords> words;  // none if no name has used them

    bool are_of(StashStatistics::Kind wanted, std::string_view text,
                std::uint64_t number) const noexcept {
        return words && kind == wanted && budget == number && text == name;
    }
    void give_to(StashStatistics::Kind wanted, std::string_view text,
                 std::uint64_t number) noexcept {
        kind = wanted;
        budget = number;
        name[text.copy(name, sizeof name - 1)] = '\0';
        words.reset();
        words.emplace(kind, text, budget);
    }
};

struct StashGroupTable {
    std::mutex mutex;
    std::array<SharedWords, 256> words;  // the first ones are for "other"
    std::size_t turn = 0;
};

inline constinit base::NeverDestroyed<StashGroupTable> stash_groups;

/// Returns counters that no name has used. Then names without a user make way in turns.
inline SharedWords* find_unused() noexcept {
    const std::span<SharedWords> all(stash_groups->words.data() + 1,
                                     stash_groups->words.size() - 1);
    for (SharedWords& one : all) {
        if (!one.words) return &one;
    }
    for (std::size_t i = 0; i != all.size(); ++i) {
        SharedWords& one = all[stash_groups->turn++ % all.size()];
        if (one.users.load() == 0) return &one;
    }
    return nullptr;
}

inline SharedWords& words_for(StashStatistics::Kind kind, std::string_view name,
                              std::uint64_t budget) noexcept {
    for (SharedWords& one : stash_groups->words) {
        if (one.are_of(kind, name, budget)) return one;
    }
    SharedWords* const unused = find_unused();
    if (unused != nullptr) {
        unused->give_to(kind, name, budget);
        return *unused;
    }
    SharedWords& other = stash_groups->words.front();
    if (!other.words) other.give_to(StashStatistics::Kind::stashes, "other", 0);
    return other;
}

/// Sets the handlers that keep stores, and the counters of stashes, usable in the child of a fork.
/// Returns false if the system has no memory for them. Later calls do nothing.
bool watch_forks() noexcept;

/// A use of the counters that all stashes, or all frozen blocks, of one name and one budget share.
///
/// Counters stay after their last user, until another name needs them. There are 255, and one more
/// named "other" for names that find none. Thread-safe; only the constructor takes a lock.
class StashGroup {
public:
    /// `budget` is the number of the one that is charged; 0 for none.
    StashGroup(StashStatistics::Kind kind, std::string_view name, std::uint64_t budget) noexcept
        : words_(use(kind, name, budget)) {}
    ~StashGroup() { words_.users.fetch_sub(1); }
    StashGroup(const StashGroup&) = delete;
    StashGroup& operator=(const StashGroup&) = delete;

    statistics::StashTotals& totals() const noexcept { return words_.words->totals(); }

private:
    static SharedWords& use(StashStatistics::Kind kind, std::string_view name,
                            std::uint64_t budget) noexcept {
        (void)watch_forks();
        const std::lock_guard guard(stash_groups->mutex);
        SharedWords& words = words_for(kind, name.substr(0, sizeof words.name - 1), budget);
        words.users.fetch_add(1);
        return words;
    }

    SharedWords& words_;
};

}  // namespace tensorpool::stashing
