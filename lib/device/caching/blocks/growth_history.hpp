#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace tensorpool::device {

/// Detects a stream that repeats earlier requests, as a program that runs the same step again and
/// again does. Memory released to the device would then only be allocated again. The class compares
/// the last four requests that no free block could serve with earlier sequences of four. It keeps
/// 1,024 hashes; a newer sequence replaces an older one. Guarded by the allocator's lock.
class GrowthHistory {
public:
    /// Adds a request by its rounded size. Returns whether the last four requests were seen before.
    bool repeats(std::size_t bytes) noexcept {
        std::uint64_t hash = 0;
        for (std::size_t i = 0; i + 1 < last_.size(); ++i) {
            last_[i] = last_[i + 1];
            hash = mixed(hash, last_[i]);
        }
        last_.back() = bytes;
        hash = mixed(hash, bytes) | 1;  // never 0, which marks an empty entry
        std::uint64_t& entry = seen_[hash >> entry_shift];
        const bool was_seen = entry == hash;
        entry = hash;
        return was_seen;
    }

private:
    static constexpr unsigned entry_shift = 54;

    static std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) noexcept {
        return std::rotl((hash ^ value) * 0x9e3779b97f4a7c15u, 23) * 0xbf58476d1ce4e5b9u;
    }

    std::array<std::size_t, 4> last_ = {};
    std::array<std::uint64_t, std::size_t{1} << (64 - entry_shift)> seen_ = {};
};

}  // namespace tensorpool::device
