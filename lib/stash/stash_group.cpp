#include "stash/stash_group.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <optional>
#include <span>

#include "base/never_destroyed.hpp"
#include "base/text.hpp"
#include "stash/stash_words.hpp"

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

/// One place. The key and the words change only while `users` is `changing`; a user that was
/// counted before keeps them as they are.
struct SharedWords {
    static constexpr std::uint32_t never_used = UINT32_MAX;
    static constexpr std::uint32_t changing = UINT32_MAX - 1;

    std::atomic<std::uint32_t> users = never_used;
    std::atomic<std::size_t> hash = 0;
    Key key;
    std::optional<StashWords> words;

    /// Adds a user if the place has this key.
    bool use(const Key& wanted) noexcept {
        if (hash.load(std::memory_order_relaxed) != wanted.hash()) return false;
        std::uint32_t seen = users.load(std::memory_order_relaxed);
        do {
            if (seen >= changing) return false;
        } while (!users.compare_exchange_weak(seen, seen + 1));
        if (key == wanted) return true;
        leave();
        return false;
    }
    void leave() noexcept { users.fetch_sub(1); }
    /// Takes a place that has `expected` for its users, and gives it to this key, with one user.
    bool take(std::uint32_t expected, const Key& wanted) noexcept {
        if (!users.compare_exchange_strong(expected, changing)) return false;
        words.reset();
        key = wanted;
        words.emplace(wanted.kind, wanted.name, wanted.budget);
        hash.store(wanted.hash(), std::memory_order_relaxed);
        users.store(1);
        return true;
    }
};

namespace {

using Places = std::array<SharedWords, 256>;  // the first one is for "other"
constinit base::NeverDestroyed<Places> places;
// Used in the child of a fork whose parent was making "other" meanwhile. Nobody sees it.
constinit base::NeverDestroyed<SharedWords> nowhere;

SharedWords* find(std::span<SharedWords> among, const Key& key) noexcept {
    for (SharedWords& place : among)
        if (place.use(key)) return &place;
    return nullptr;
}

SharedWords* take(std::span<SharedWords> among, const Key& key) noexcept {
    for (const std::uint32_t users : {SharedWords::never_used, std::uint32_t{0}})
        for (SharedWords& place : among)
            if (place.take(users, key)) return &place;
    return nullptr;
}

SharedWords& other() noexcept {
    const Key key(Kind::stashes, 0, "other");
    const std::span<SharedWords> first(places.get().data(), 1);
    SharedWords* place = find(first, key);
    if (place == nullptr) place = take(first, key);
    return place != nullptr ? *place : nowhere.get();
}

// Of two threads that take a place for the same key, at least one sees the other's: the later place
// is left.
SharedWords& place_for(const Key& key) noexcept {
    const std::span<SharedWords> all(places.get().data() + 1, places.get().size() - 1);
    if (SharedWords* const found = find(all, key)) return *found;
    SharedWords* const taken = take(all, key);
    if (taken == nullptr) return other();
    SharedWords* const earlier = find({all.data(), taken}, key);
    if (earlier == nullptr) return *taken;
    taken->leave();
    return *earlier;
}

}  // namespace

StashGroup::StashGroup(Kind kind, std::string_view name, std::uint64_t budget) noexcept
    : words_(place_for({kind, budget, name})) {}

StashGroup::~StashGroup() {
    words_.leave();
}

statistics::StashTotals& StashGroup::totals() const noexcept {
    return words_.words->totals();
}

}  // namespace tensorpool::stashing
