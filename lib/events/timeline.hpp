#pragma once

#include <tensorpool/timeline.hpp>

#include "base/refusal.hpp"

namespace tensorpool::events {

/// Writes an entry to the process's timeline, with the time, the calling thread and the first 23
/// bytes of `name`. Does nothing if there is no segment. May be called on any thread at any time,
/// including signal handlers: takes no lock, allocates nothing and never waits. Takes about 0.2 us,
/// most of it for the system call that returns the thread's number.
void write_entry(EntryKind kind, LimitKind limit, std::uint64_t bytes,
                 std::string_view name) noexcept;

/// Returns the kind of the limit that a refusal names.
inline LimitKind limit_kind(const base::Refusal& refusal) noexcept {
    static constexpr std::pair<std::string_view, LimitKind> all[] = {
        {"max_allocation", LimitKind::request},
        {"max_capacity", LimitKind::capacity},
        {"the buffer", LimitKind::capacity},
        {"the budget's hard limit", LimitKind::capacity},
        {"the largest alignment", LimitKind::address_space},
        {"the largest size", LimitKind::request},
        {"available memory", LimitKind::memory},
        {"what the system commits", LimitKind::memory},
        {"address space", LimitKind::address_space},
        {"reserved address space", LimitKind::address_space},
        {"a quarter of the address space that RLIMIT_AS left", LimitKind::address_space},
        {"the measuring range", LimitKind::address_space},
        {"memory for the pool's records", LimitKind::records}};
    for (const auto& [limit, kind] : all) {
        if (limit == refusal.limit) return kind;
    }
    return LimitKind::none;
}

/// Returns the kind of timeline entry for a request that was refused because of this limit.
inline EntryKind refusal_kind(LimitKind limit) noexcept {
    const bool own = limit == LimitKind::request || limit == LimitKind::capacity;
    return own ? EntryKind::limit : EntryKind::failure;
}

}  // namespace tensorpool::events
