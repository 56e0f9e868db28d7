#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tensorpool::files {

/// Finds things by name, and finds duplicate names. Keys are sorted by hash, then by name, so that
/// a file whose names all have the same hash takes no more than O(n log n) comparisons.
class NameIndex {
public:
    /// Two things of the same name, the earlier first.
    struct Duplicates {
        std::size_t first;
        std::size_t second;
    };

    /// Builds the index; `name_of(thing)` returns a name. Returns duplicates, if there are any.
    /// REQUIRES: at most 2^32 - 1 things.
    template <class Thing, class NameOf>
    std::optional<Duplicates> build(std::span<const Thing> things, NameOf name_of) {
        keys_.clear();
        keys_.reserve(things.size());
        for (std::size_t i = 0; i < things.size(); ++i) {
            keys_.push_back(hash_of(name_of(things[i])) | i);
        }
        std::ranges::sort(keys_, [&](std::uint64_t one, std::uint64_t other) {
            if (hash_part(one) != hash_part(other)) return one < other;
            const auto order =
                name_of(things[index_part(one)]).compare(name_of(things[index_part(other)]));
            return order != 0 ? order < 0 : one < other;
        });
        for (std::size_t i = 1; i < keys_.size(); ++i) {
            if (hash_part(keys_[i - 1]) != hash_part(keys_[i])) continue;
            const Duplicates duplicates = {index_part(keys_[i - 1]), index_part(keys_[i])};
            if (name_of(things[duplicates.first]) == name_of(things[duplicates.second]))
                return duplicates;
        }
        return std::nullopt;
    }

    /// Returns the thing of that name among those that the index was built from; nullptr if there
    /// is none.
    template <class Thing, class NameOf>
    const Thing* find(std::span<const Thing> things, NameOf name_of,
                      std::string_view name) const noexcept {
        const std::uint64_t hash = hash_of(name);
        const auto at = std::ranges::partition_point(keys_, [&](std::uint64_t key) {
            if (hash_part(key) != hash) return key < hash;
            return name_of(things[index_part(key)]) < name;
        });
        if (at == keys_.end()) return nullptr;
        const Thing& thing = things[index_part(*at)];
        return name_of(thing) == name ? &thing : nullptr;
    }

private:
    static std::uint64_t hash_of(std::string_view name) noexcept {
        return hash_part(std::hash<std::string_view>()(name));
    }
    static std::uint64_t hash_part(std::uint64_t key) noexcept { return key & ~0xffffffffULL; }
    static std::size_t index_part(std::uint64_t key) noexcept { return key & 0xffffffff; }

    // The upper half is a hash, the lower half the number of the thing.
    std::vector<std::uint64_t> keys_;
};

}  // namespace tensorpool::files
