#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace tensorpool::device {

/// Ranges of addresses that do not overlap, each with a value. Not thread-safe.
template <class Value>
class RangeMap {
public:
    struct Range {
        std::size_t bytes;
        Value value;
    };
    using Map = std::map<std::uintptr_t, Range>;

    /// Adds a range. Returns false, and adds nothing, if it overlaps another one, is empty, or
    /// exceeds the address space. Throws std::bad_alloc.
    bool add(const void* address, std::size_t bytes, Value value) {
        const std::uintptr_t begin = number(address);
        if (bytes == 0 || begin + bytes < begin || overlaps(address, bytes)) return false;
        ranges_.emplace(begin, Range{bytes, std::move(value)});
        return true;
    }

    /// Returns the range that begins at the address, or nullptr.
    Range* find(const void* address) noexcept {
        const auto found = ranges_.find(number(address));
        return found == ranges_.end() ? nullptr : &found->second;
    }
    /// Returns the range that contains all of these addresses, or nullptr.
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

    /// Removes the range that begins at the address. Returns false if there is none.
    bool take(const void* address) noexcept { return ranges_.erase(number(address)) != 0; }

    Map& ranges() noexcept { return ranges_; }

private:
    static std::uintptr_t number(const void* address) noexcept {
        return reinterpret_cast<std::uintptr_t>(address);
    }

    Map ranges_;
};

}  // namespace tensorpool::device
