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

/// Finds a thing by its name, and names that stand twice. Sorted by hash, then by name, so that a
/// file whose names all have one hash costs no more than n log n comparisons.
class NameIndex {
public:
    /// Two things of one name, the earlier first.
    struct Twins {
        std::size_t first;
        std::size_t second;
    };

    /// `name_of(thing)` is its name. At most 2^32 - 1 things.
    template <class Thing, class NameOf>
    std::optional<Twins> build(std::span<const Thing> things, NameOf name_of) {
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
            const Twins twins = {index_part(keys_[i - 1]), index_part(keys_[i])};
            if (name_of(things[twins.first]) == name_of(things[twins.second])) return twins;
        }
        return std::nullopt;
    }

    /// Of the things that it was built of; nullptr where none has that name.
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

    // Half a hash above, the thing's number below.
    std::vector<std::uint64_t> keys_;
};

}  // namespace tensorpool::files
