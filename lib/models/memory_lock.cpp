#include <tensorpool/memory_lock.hpp>

#include "models/mapping.hpp"

namespace tensorpool {
namespace {

using files::PageRange;

/// The bytes that are locked at once: enough that the check of available memory (some 50 µs) costs
/// little in comparison, and little enough that memory cannot run out in between.
constexpr std::size_t piece_bytes = std::size_t{64} << 20;

/// Returns the pages, by their addresses, that hold a byte of `range`.
PageRange pages_of(std::span<const std::byte> range) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(range.data());
    if (range.empty()) return {begin, begin};
    return {base::align_down(begin, platform::page_bytes()),
            base::align_up(begin + range.size(), platform::page_bytes())};
}

/// Returns the pages of the first `to` bytes of `range` without those of the first `from` bytes.
PageRange pages_between(std::span<const std::byte> range, std::size_t from,
                        std::size_t to) noexcept {
    const PageRange pages = pages_of(range.first(to));
    return from == 0 ? pages : PageRange{pages_of(range.first(from)).end, pages.end};
}

void* pointer_to(std::size_t address) noexcept {
    return reinterpret_cast<void*>(address);
}

/// Returns whether there is memory for those of the pages that are not resident.
bool has_room(PageRange pages, const platform::MemoryRoom& room) noexcept {
    if (pages.size() <= room.available) return true;
    if (pages.size() > room.limit) return false;
    // Computed only if needed: it takes long for many pages.
    const std::size_t resident =
        platform::resident_file_bytes(pointer_to(pages.begin), pages.size());
    return pages.size() - std::min(pages.size(), resident) <= room.available;
}

LockOutcome refused_by(const platform::MemoryRoom& room) noexcept {
    return {.limit = room.is_of_container ? LockLimit::container : LockLimit::machine,
            .limit_bytes = room.limit,
            .available_bytes = room.available};
}

LockOutcome refused_by_process_limit(std::size_t missing) noexcept {
    const platform::LockLimits limits = platform::lock_limits();
    const std::size_t needed = platform::locked_memory() + missing;
    return {.limit = needed <= limits.hard ? LockLimit::soft : LockLimit::hard,
            .limit_bytes = limits.soft,
            .hard_limit_bytes = limits.hard,
            .needed_bytes = needed};
}

/// Describes a refusal. `missing` bytes of the request are not locked.
LockOutcome refused_by_system(platform::LockRefusal refusal, std::size_t missing,
                              int error) noexcept {
    switch (refusal) {
        case platform::LockRefusal::none:
            return {};
        case platform::LockRefusal::limit:
            return refused_by_process_limit(missing);
        case platform::LockRefusal::memory:
            return refused_by(platform::memory_room());
        case platform::LockRefusal::pages:
            return {.limit = LockLimit::pages};
        case platform::LockRefusal::other:
            break;
    }
    return {.limit = LockLimit::system, .error = error};
}

std::string text_of(std::size_t bytes) {
    return bytes == SIZE_MAX ? "unlimited" : base::BytesText(bytes).c_str();
}

std::string process_limit_text(const LockOutcome& outcome) {
    const bool is_hard = outcome.limit == LockLimit::hard;
    return std::string("the limit of locked memory of this process (") +
           platform::lock_limit_name() + ") is " + text_of(outcome.limit_bytes) + ", hard limit " +
           text_of(outcome.hard_limit_bytes) + ", and would have to be " +
           text_of(outcome.needed_bytes) +
           "; to raise it: " + platform::how_to_raise_lock_limit(outcome.needed_bytes, is_hard);
}

std::string machine_text(const LockOutcome& outcome) {
    return "the machine has " + text_of(outcome.available_bytes) + " of its " +
           text_of(outcome.limit_bytes) + " available; end other programs, or lock less";
}

std::string container_text(const LockOutcome& outcome) {
    return "the limit of this container (cgroup) is " + text_of(outcome.limit_bytes) +
           ", which leaves " + text_of(outcome.available_bytes) +
           "; to raise it: --memory= of docker or podman, resources.limits.memory of a pod, or "
           "MemoryMax= of a systemd unit";
}

std::string reason_text(const LockOutcome& outcome) {
    switch (outcome.limit) {
        case LockLimit::none:
            break;
        case LockLimit::soft:
        case LockLimit::hard:
            return process_limit_text(outcome);
        case LockLimit::machine:
            return machine_text(outcome);
        case LockLimit::container:
            return container_text(outcome);
        case LockLimit::pages:
            return "some of it is not mapped, or its file was cut short";
        case LockLimit::system:
            return std::system_category().message(outcome.error);
    }
    return "";
}

}  // namespace

MemoryLock::MemoryLock(MemoryLock&& other) noexcept {
    *this = std::move(other);
}

MemoryLock& MemoryLock::operator=(MemoryLock&& other) noexcept {
    std::swap(range_, other.range_);
    std::swap(locked_, other.locked_);
    std::swap(has_room_for_, other.has_room_for_);
    std::swap(refusal_, other.refusal_);
    return *this;
}

MemoryLock::~MemoryLock() {
    const PageRange pages = pages_of(range_.first(locked_));
    if (!pages.is_empty()) platform::unlock_pages(pointer_to(pages.begin), pages.size());
}

LockOutcome MemoryLock::grow_to(std::size_t bytes) noexcept {
    bytes = std::min(bytes, range_.size());
    if (bytes > locked_ && refusal_) refusal_ = lock_more(bytes);
    LockOutcome outcome = bytes > locked_ ? refusal_ : LockOutcome{};
    outcome.asked_bytes = bytes;
    outcome.locked_bytes = std::min(bytes, locked_);
    return outcome;
}

LockOutcome MemoryLock::lock_more(std::size_t bytes) noexcept {
    LockOutcome outcome = check_room(bytes);
    while (outcome && locked_ < bytes) {
        const std::size_t next = locked_ + std::min(piece_bytes, bytes - locked_);
        outcome = check_room(next);
        if (outcome) outcome = lock_piece(next, pages_between(range_, locked_, bytes).size());
    }
    return outcome;
}

LockOutcome MemoryLock::lock_piece(std::size_t bytes, std::size_t missing) noexcept {
    const PageRange pages = pages_between(range_, locked_, bytes);
    int error = 0;
    const auto refusal = pages.is_empty()
                             ? platform::LockRefusal::none
                             : platform::lock_pages(pointer_to(pages.begin), pages.size(), error);
    if (refusal == platform::LockRefusal::none) locked_ = bytes;
    return refused_by_system(refusal, missing, error);
}

// The check is skipped for small pieces while they are little in comparison with the room that was
// found.
LockOutcome MemoryLock::check_room(std::size_t bytes) noexcept {
    if (bytes <= has_room_for_) return {};
    const platform::MemoryRoom room = platform::memory_room();
    if (!has_room(pages_between(range_, locked_, bytes), room)) return refused_by(room);
    has_room_for_ = locked_ + std::min(piece_bytes, room.available / 2);
    return {};
}

std::string to_text(const LockOutcome& outcome) {
    if (outcome) return "";
    return "tensorpool: lock " + text_of(outcome.asked_bytes) + ": locked " +
           text_of(outcome.locked_bytes) + ", the rest stays unlocked: " + reason_text(outcome);
}

}  // namespace tensorpool
