#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tensorpool::arena {

/// The releases of one arena, as far as a mark needs them. Numbers begin with 1.
///
/// A mark is stale if a release with a later number went below its offset. Of two releases, the
/// earlier one matters only if the later one went less far down. So the kept releases have
/// increasing offsets and increasing numbers, and marks are not recorded anywhere.
///
/// One thread at a time adds releases. `sequence` may be read while another thread adds one.
class ReleaseHistory {
public:
    /// Allocates room for the first release, so that a reset never fails.
    ReleaseHistory() { releases_.reserve(1); }

    /// Returns the number of releases so far, which a new mark carries.
    std::uint64_t count() const noexcept { return sequence() / 2; }
    /// Adds a release to `offset`.
    void add(std::size_t offset) noexcept {
        begin_release();
        finish_release(offset);
    }

    /// Returns twice the number of releases, plus 1 while a release is under way. Acquire: a thread
    /// that reads an even value sees the arena as that release left it.
    std::uint64_t sequence() const noexcept { return sequence_.load(std::memory_order_acquire); }
    static bool is_release_under_way(std::uint64_t sequence) noexcept { return sequence % 2 != 0; }
    /// Announces a release, before it changes the arena.
    void begin_release() noexcept {
        sequence_.store(sequence_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    /// Adds the release that was begun.
    void finish_release(std::size_t offset) noexcept;
    /// Takes the announcement back: nothing was released.
    void cancel_release() noexcept {
        sequence_.store(sequence_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    }

    /// Returns whether a release after the first `releases` went below `offset`.
    bool went_below(std::size_t offset, std::uint64_t releases) const noexcept;

private:
    struct Release {
        std::size_t offset;
        std::uint64_t number;
    };
    std::vector<Release> releases_;
    std::atomic<std::uint64_t> sequence_ = 0;
};

}  // namespace tensorpool::arena
