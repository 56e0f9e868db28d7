#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace tensorpool::device {

/// Ranges of addresses that do not overlap, each with a value. One thread at a time.
template <class Value>
class RangeMap {
public:
    struct Range {
        std::size_t bytes;
        Value value;
    };
    using Map = std::map<std::uintptr_t, Range>;
    using Node = typename Map::node_type;

    /// False, and nothing added, where it overlaps another, is empty or goes beyond all addresses.
    /// Throws std::bad_alloc.
    bool add(const void* address, std::size_t bytes, Value value) {
        const std::uintptr_t begin = number(address);
        if (bytes == 0 || begin + bytes < begin || overlaps(address, bytes)) return false;
        ranges_.emplace(begin, Range{bytes, std::move(value)});
        return true;
    }

    /// The range that begins there; nullptr for none.
    Range* find(const void* address) noexcept {
        const auto found = ranges_.find(number(address));
        return found == ranges_.end() ? nullptr : &found->second;
    }
    /// The range that holds all of these addresses; nullptr for none.
    const Range* find_around(const void* address, std::size_t bytes) const noexcept {
        auto after = ranges_.upper_bound(number(address));
        if (after == ranges_.begin()) return nullptr;
        --after;
        const std::uintptr_t offset = number(address) - after->first;
        const std::size_t size = after->second.bytes;
        return offset <= size && bytes <= size - offset ? &after->second : nullptr;
    }
    bool overlaps(const void* address, std::size_t bytes) const noexcept {
        const std::uintptr_t begin = number(address);
        const auto after = ranges_.lower_bound(begin);
        if (after != ranges_.end() && after->first - begin < bytes) return true;
        if (after == ranges_.begin()) return false;
        const auto before = std::prev(after);
        return begin - before->first < before->second.bytes;
    }

    /// Takes out the range that begins there; empty for none. What was taken can be put back, which
    /// needs no memory.
    Node take(const void* address) noexcept { return ranges_.extract(number(address)); }
    void put_back(Node node) noexcept { ranges_.insert(std::move(node)); }

    Map& ranges() noexcept { return ranges_; }

private:
    static std::uintptr_t number(const void* address) noexcept {
        return reinterpret_cast<std::uintptr_t>(address);
    }

    Map ranges_;
};

}  // namespace tensorpool::device
