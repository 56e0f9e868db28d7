#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorpool::arena {

/// The releases of one arena, as far as a mark needs them. Numbers begin with 1.
///
/// A mark is stale if a release with a later number went below its offset. Of two releases, the
/// earlier one matters only if the later one went less far down. So the kept releases have
/// increasing offsets and increasing numbers, and marks are not recorded anywhere.
class ReleaseHistory {
public:
    /// Allocates room for the first release, so that a reset never fails.
    ReleaseHistory() { releases_.reserve(1); }

    /// Returns the number of releases so far, which a new mark carries.
    std::uint64_t count() const noexcept { return count_; }
    void add(std::size_t offset) noexcept;
    /// Returns whether a release after the first `releases` went below `offset`.
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
