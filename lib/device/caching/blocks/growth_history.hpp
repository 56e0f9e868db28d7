#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tensorpool::device {

/// Whether one stream asks again for what it asked for before: a program that repeats its steps, in
/// which memory would go back and come again each time. Compares the last four requests that no
/// free block could serve with all such fours before; of a thousand, the last is kept. Under the
/// allocator's lock.
class GrowthHistory {
public:
    /// One request more, by its rounded size.
    bool repeats(std::size_t bytes) noexcept {
        std::uint64_t hash = 0;
        for (std::size_t i = 0; i + 1 < last_.size(); ++i) {
            last_[i] = last_[i + 1];
            hash = mixed(hash, last_[i]);
        }
        last_.back() = bytes;
        hash = mixed(hash, bytes) | 1;  // 0: nothing yet
        std::uint64_t& place = seen_[hash >> place_shift];
        const bool was_seen = place == hash;
        place = hash;
        return was_seen;
    }

private:
    static constexpr unsigned place_shift = 54;

    static std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
        return std::rotl((hash ^ value) * 0x9e3779b97f4a7c15u, 23) * 0xbf58476d1ce4e5b9u;
    }

    std::array<std::size_t, 4> last_ = {};
    std::array<std::uint64_t, std::size_t{1} << (64 - place_shift)> seen_ = {};
};

}  // namespace tensorpool::device
