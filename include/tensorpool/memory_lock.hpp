#pragma once

/// @file
/// Memory that the system must keep resident: locked memory. All sizes are bytes.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// What prevented a lock.
enum class LockLimit : std::uint8_t {
    /// Nothing.
    none,
    /// The process's limit of locked memory, which it may raise itself (RLIMIT_MEMLOCK).
    soft,
    /// The process's limit of locked memory, which only an administrator may raise.
    hard,
    /// The available memory of the machine.
    machine,
    /// The memory that the limit of the container (a control group) leaves.
    container,
    /// Not all of the range is mapped, or its file was truncated.
    pages,
    /// Another reason of the system.
    system,
};

/// The result of a request to lock memory. Converts to true if all of the requested bytes are
/// locked.
struct LockOutcome {
    /// What prevented the lock.
    LockLimit limit = LockLimit::none;
    /// The requested bytes, from the beginning of the range.
    std::size_t asked_bytes = 0;
    /// The bytes of them that are locked, in whole pages.
    std::size_t locked_bytes = 0;
    /// The value of the limit, for `soft`, `hard` and `container`; for `machine`, its memory.
    std::size_t limit_bytes = 0;
    /// The process's hard limit, for `soft` and `hard`; SIZE_MAX means none.
    std::size_t hard_limit_bytes = 0;
    /// The limit with which the lock would have succeeded, for `soft` and `hard`.
    std::size_t needed_bytes = 0;
    /// The memory that was available, for `machine` and `container`.
    std::size_t available_bytes = 0;
    /// The system's error number, for `system`.
    int error = 0;

    /// Returns whether all of the requested bytes are locked.
    explicit operator bool() const noexcept { return limit == LockLimit::none; }
};
/// Returns one line for people: which limit, its value, the requested bytes and how to raise the
/// limit. "" if nothing prevented the lock.
TENSORPOOL_API std::string to_text(const LockOutcome& outcome);

/// Keeps a range of memory, such as the bytes of a mapped file, resident until it is destroyed:
/// from the beginning of the range, as far as requested.
///
/// Locking never fails with an exception. If the system refuses, the rest of the range stays
/// unlocked and the result says why. The range must stay mapped for the lifetime of this object,
/// except for parts that a MappedFile unmaps. Locks apply to whole pages and are not counted: a
/// page that two objects lock is unlocked when the first of them is destroyed. One thread at a time
/// may use the object.
class TENSORPOOL_API MemoryLock {
public:
    /// Makes a lock of no memory.
    MemoryLock() noexcept = default;
    /// Makes a lock for `range`, which need not begin or end at a page. Nothing is locked yet.
    explicit MemoryLock(std::span<const std::byte> range) noexcept : range_(range) {}
    /// Takes over the locked range of another object, which then locks nothing.
    MemoryLock(MemoryLock&& other) noexcept;
    /// Gives up its own and takes over the locked range of another object, which then locks
    /// nothing.
    MemoryLock& operator=(MemoryLock&& other) noexcept;
    /// Unlocks the memory.
    ~MemoryLock();

    /// Locks the first `bytes` bytes of the range, at most all of it; bytes that are locked stay
    /// locked.
    ///
    /// Pages that are not in memory are read first, so the call takes as long as reading them. A
    /// lock for which the machine or the container has not enough memory is not begun; other limits
    /// stop it where they are met. After a refusal the system is not called again, and the result
    /// stays the same.
    LockOutcome grow_to(std::size_t bytes) noexcept;

    /// Returns the locked bytes, from the beginning of the range.
    std::size_t locked_bytes() const noexcept { return locked_; }
    /// Returns the range.
    std::span<const std::byte> range() const noexcept { return range_; }

private:
    LockOutcome lock_more(std::size_t bytes) noexcept;
    LockOutcome lock_piece(std::size_t bytes, std::size_t missing) noexcept;
    LockOutcome check_room(std::size_t bytes) noexcept;

    std::span<const std::byte> range_;
    // Both count from the beginning of the range: the locked bytes, and the bytes for which there
    // was memory at the last check.
    std::size_t locked_ = 0;
    std::size_t has_room_for_ = 0;
    LockOutcome refusal_;  // `none`, or why no more is locked
};

}  // namespace tensorpool
