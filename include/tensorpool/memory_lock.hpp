#pragma once

/// @file
/// Memory that the system must not take away: locked. All sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// What stood in the way of a lock.
enum class LockLimit : std::uint8_t {
    none,
    soft,     ///< the process's limit of locked memory, which it may raise itself (RLIMIT_MEMLOCK)
    hard,     ///< the same, and only an administrator may
    machine,  ///< the machine has not so much memory available
    container,  ///< the container's limit leaves not so much (a control group's)
    pages,      ///< not all of it is mapped, or its file was cut short
    system,     ///< another reason of the system
};

/// What became of the wish to lock. Converts to true where all that was asked for is locked.
struct LockOutcome {
    LockLimit limit = LockLimit::none;
    std::size_t asked_bytes = 0;   ///< from the beginning of the range
    std::size_t locked_bytes = 0;  ///< what is locked of that, in whole pages
    /// The limit's value: of `soft` and `hard`, of the container; of the machine, its memory.
    std::size_t limit_bytes = 0;
    std::size_t hard_limit_bytes = 0;  ///< of `soft` and `hard`; SIZE_MAX: none
    /// `soft` and `hard`: what the limit would have to be.
    std::size_t needed_bytes = 0;
    std::size_t available_bytes = 0;  ///< `machine` and `container`: what there was to be had
    int error = 0;                    ///< `system`: its number

    explicit operator bool() const noexcept { return limit == LockLimit::none; }
};
/// For people, in one line: which limit, its value, what was asked, and how to raise it. "" where
/// nothing stood in the way.
TENSORPOOL_API std::string to_text(const LockOutcome& outcome);

/// Keeps a range of memory, such as the bytes of a mapped file, in memory until it goes: from its
/// beginning, as far as it was told. Never fails: where the system refuses, the rest of the range
/// stays unlocked, and the outcome says why. The range must stay mapped as long as this object
/// lives, save what a MappedFile unmaps. Locks are by whole pages and do not add up: where two of
/// these share a page, it is unlocked when the first of them goes. One thread at a time.
class TENSORPOOL_API MemoryLock {
public:
    /// Locks nothing.
    MemoryLock() noexcept = default;
    /// Locks nothing yet. `range` need not begin or end with a page.
    explicit MemoryLock(std::span<const std::byte> range) noexcept : range_(range) {}
    MemoryLock(MemoryLock&& other) noexcept;
    MemoryLock& operator=(MemoryLock&& other) noexcept;
    /// Unlocks.
    ~MemoryLock();

    /// Locks the first `bytes` of the range, all of it at most; what is locked already stays so.
    /// What is not in memory is read into it first, so that the call takes as long as that. A lock
    /// that the machine or the container has no memory for is not begun; other limits stop it where
    /// they are met. Once that happened the system is not asked again: the outcome stays.
    LockOutcome grow_to(std::size_t bytes) noexcept;

    /// What is locked from the beginning of the range on.
    std::size_t locked_bytes() const noexcept { return locked_; }
    std::span<const std::byte> range() const noexcept { return range_; }

private:
    LockOutcome lock_more(std::size_t bytes) noexcept;
    LockOutcome lock_piece(std::size_t bytes, std::size_t missing) noexcept;
    LockOutcome check_room(std::size_t bytes) noexcept;

    std::span<const std::byte> range_;
    // Both from its beginning on; how much was locked, and for how much there was memory when we
    // asked last.
    std::size_t locked_ = 0;
    std::size_t has_room_for_ = 0;
    LockOutcome refusal_;  // none, or why no more is locked
};

}  // namespace tensorpool
