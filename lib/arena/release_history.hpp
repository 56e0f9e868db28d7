#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorpool::arena {

/// The releases of one arena, as far as a mark may have to know of them. Numbers begin with 1.
///
/// A mark is stale when a release with a later number went below its offset. Of two releases the
/// earlier one matters only where the later one went less far down, so what is kept has increasing
/// offsets and increasing numbers, and marks need not be recorded anywhere.
class ReleaseHistory {
public:
    /// Room for the first release, so that a reset never fails.
    ReleaseHistory() { releases_.reserve(1); }

    /// How many there were: what a mark made now carries.
    std::uint64_t count() const noexcept { return count_; }
    void add(std::size_t offset) noexcept;
    /// Whether a release after the first `releases` went below `offset`.
    bool went_below(std::size_t offset, std::uint64_t releases) const noexcept;

private:
    struct Release {
        std::size_t offset;
        std::uint64_t number;
    };
    std::vector<Release> releases_;
    std::uint64_t count_ = 0;
};

}  // namespace tensorpool::arena
