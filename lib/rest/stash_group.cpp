#include "rest/stash_group.hpp"

#include <functional>
#include <optional>
#include <thread>

#include "base/never_destroyed.hpp"
#include "base/text.hpp"

namespace tensorpool::stashing {
namespace {

using Kind = StashStatistics::Kind;

struct Key {
    Kind kind = Kind::stashes;
    std::uint64_t budget = 0;
    char name[48] = {};

    Key() noexcept = default;
    Key(Kind kind_of, std::uint64_t number, std::string_view text) noexcept
        : kind(kind_of), budget(number) {
        base::FixedText(name, sizeof name)
            .add("%.*s", static_cast<int>(std::min(text.size(), sizeof name)), text.data());
    }
    bool operator==(const Key&) const noexcept = default;
    std::size_t hash() const noexcept {
        return std::hash<std::string_view>()(name) ^ (budget * 64 + static_cast<std::size_t>(kind));
    }
};

}  // namespace

/// The counters of one name. The key and the words change only while `users` is `changing`; a user
/// that was counted before keeps them as they are.
struct SharedWords {
    static constexpr std::uint32_t never_used = UINT32_MAX;
    static constexpr std::uint32_t changing = UINT32_MAX - 1;

    std::atomic<std::uint32_t> users = never_used;
    std::atomic<std::size_t> hash = 0;
    Key key;
    std::optional<StashWords> words;
    statistics::StashTotals unseen;  // without words

    statistics::StashTotals& totals() noexcept { return words ? words->totals() : unseen; }
    /// Adds a user if they are of this key.
    bool use(const Key& wanted) noexcept {
        if (hash.load() != wanted.hash()) return false;
        std::uint32_t seen = users.load();
        // Another thread makes the words. It is lost if this is the child of a fork.
        for (int i = 0; seen == changing && i != 1000; ++i) {
            std::this_thread::yield();
            seen = users.load();
        }
        do {
            if (seen >= changing) return false;
        } while (!users.compare_exchange_weak(seen, seen + 1));
        if (key == wanted) return true;
        leave();
        return false;
    }
    void leave() noexcept { users.fetch_sub(1); }
    /// Gives them to this key, with one user, if they have `expected` users. Not inlined, for GCC
    /// 12 then warns of what an empty optional contains.
    [[gnu::noinline]] bool take(std::uint32_t expected, const Key& wanted) noexcept {
        if (!users.compare_exchange_strong(expected, changing)) return false;
        key = wanted;
        hash.store(wanted.hash());  // ahead of the words, which take longer
        words.reset();
        words.emplace(wanted.kind, wanted.name, wanted.budget);
        users.store(1);
        return true;
    }
    /// Gives up what `take` gave, unless others use it already.
    void give_up() noexcept {
        std::uint32_t one = 1;
        if (!users.compare_exchange_strong(one, changing)) return leave();
        hash.store(0);
        words.reset();
        users.store(never_used);
    }
};

namespace {

using Table = std::array<SharedWords, 256>;  // the first entry is for "other"
constinit base::NeverDestroyed<Table> table;
// No reader sees it. Used in the child of a fork whose parent was making "other" meanwhile.
constinit base::NeverDestroyed<SharedWords> nowhere;

SharedWords* find(std::span<SharedWords> among, const Key& key) noexcept {
    for (SharedWords& words : among)
        if (words.use(key)) return &words;
    return nullptr;
}

// Names without a user make way in turns.
SharedWords* take(std::span<SharedWords> among, const Key& key) noexcept {
    static constinit std::atomic<std::size_t> turn = 0;
    for (SharedWords& words : among)
        if (words.take(SharedWords::never_used, key)) return &words;
    for (std::size_t i = 0; i != among.size(); ++i) {
        SharedWords& words = among[turn.fetch_add(1, std::memory_order_relaxed) % among.size()];
        if (words.take(0, key)) return &words;
    }
    return nullptr;
}

SharedWords& other() noexcept {
    const Key key(Kind::stashes, 0, "other");
    const std::span<SharedWords> first(table.get().data(), 1);
    SharedWords* words = find(first, key);
    if (words == nullptr) words = take(first, key);
    if (words == nullptr) words = find(first, key);  // another thread has just made them
    return words != nullptr ? *words : nowhere.get();
}

// Of two threads that make words for the same key, at least one sees the other's, unless both took
// theirs in the same nanoseconds: the later ones are given up.
SharedWords& words_for(const Key& key) noexcept {
    const std::span<SharedWords> all(table.get().data() + 1, table.get().size() - 1);
    if (SharedWords* const found = find(all, key)) return *found;
    SharedWords* const taken = take(all, key);
    if (taken == nullptr) return other();
    SharedWords* const earlier = find({all.data(), taken}, key);
    if (earlier == nullptr) return *taken;
    taken->give_up();
    return *earlier;
}

}  // namespace

StashGroup::StashGroup(Kind kind, std::string_view name, std::uint64_t budget) noexcept
    : words_(words_for({kind, budget, name})) {}

StashGroup::~StashGroup() {
    words_.leave();
}

statistics::StashTotals& StashGroup::totals() const noexcept {
    return words_.totals();
}

}  // namespace tensorpool::stashing
