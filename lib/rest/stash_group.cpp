#include "rest/stash_group.hpp"

#include <optional>

#include "base/never_destroyed.hpp"
#include "rest/spill_store.hpp"

namespace tensorpool::stashing {

using Kind = StashStatistics::Kind;

/// The counters of one name.
struct SharedWords {
    std::atomic<std::uint32_t> users = 0;  // more only under the lock
    Kind kind = Kind::stashes;
    std::uint64_t budget = 0;
    char name[48] = {};
    std::optional<StashWords> words;  // none if no name has used them

    bool are_of(Kind wanted, std::string_view text, std::uint64_t number) const noexcept {
        return words && kind == wanted && budget == number && text == name;
    }
    void give_to(Kind wanted, std::string_view text, std::uint64_t number) noexcept {
        kind = wanted;
        budget = number;
        name[text.copy(name, sizeof name - 1)] = '\0';
        words.reset();
        words.emplace(kind, text, budget);
    }
};

namespace {

struct Table {
    std::mutex mutex;
    std::array<SharedWords, 256> words;  // the first ones are for "other"
    std::size_t turn = 0;
};

constinit base::NeverDestroyed<Table> table;

/// Returns counters that no name has used. Then names without a user make way in turns.
SharedWords* find_unused() noexcept {
    const std::span<SharedWords> all(table->words.data() + 1, table->words.size() - 1);
    for (SharedWords& one : all) {
        if (!one.words) return &one;
    }
    for (std::size_t i = 0; i != all.size(); ++i) {
        SharedWords& one = all[table->turn++ % all.size()];
        if (one.users.load() == 0) return &one;
    }
    return nullptr;
}

SharedWords& words_for(Kind kind, std::string_view name, std::uint64_t budget) noexcept {
    for (SharedWords& one : table->words) {
        if (one.are_of(kind, name, budget)) return one;
    }
    SharedWords* const unused = find_unused();
    if (unused != nullptr) {
        unused->give_to(kind, name, budget);
        return *unused;
    }
    SharedWords& other = table->words.front();
    if (!other.words) other.give_to(Kind::stashes, "other", 0);
    return other;
}

}  // namespace

void lock_stash_groups() noexcept {
    table->mutex.lock();
}

void unlock_stash_groups() noexcept {
    table->mutex.unlock();
}

SharedWords& StashGroup::use(Kind kind, std::string_view name, std::uint64_t budget) noexcept {
    (void)watch_forks();
    const std::lock_guard guard(table->mutex);
    SharedWords& words = words_for(kind, name.substr(0, sizeof words.name - 1), budget);
    words.users.fetch_add(1);
    return words;
}

StashGroup::~StashGroup() {
    words_.users.fetch_sub(1);
}

statistics::StashTotals& StashGroup::totals() const noexcept {
    return words_.words->totals();
}

}  // namespace tensorpool::stashing
