#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include <tensorpool/scratch_report.hpp>

namespace tensorpool::detail {

/// What is known of an operator. Relaxed throughout: the values publish nothing else.
struct ScratchOperator {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> peak_bytes = 0;
    std::atomic<std::uint64_t> need_bytes = 0;  ///< the peak, with room for alignment
    std::atomic<std::uint64_t> growths = 0;
    std::atomic<std::uint64_t> grown_bytes = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::arena {

/// All operators of the process by name. They are added and never removed, so a pointer to one
/// stays valid. Thread-safe. There is one table in the process.
class ScratchOperators {
public:
    struct Entry {
        std::string_view name;  ///< lives as long as the operator
        detail::ScratchOperator* found;
    };
    /// Returns the operator `name`, adding it if it is new. Throws std::bad_alloc.
    Entry find_or_add(std::string_view name);
    /// Returns the name of an operator; "" if it is nullptr or unknown.
    std::string name_of(const detail::ScratchOperator* known) const;
    ScratchReport report() const;

    /// Locks and unlocks the table around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    mutable std::mutex mutex_;
    std::map<std::string, detail::ScratchOperator, std::less<>> operators_;
};

ScratchOperators& scratch_operators();

/// The operators that one thread has looked up, so that it takes the lock once for each.
class KnownOperators {
public:
    /// Returns the operator `name`; nullptr if there is no memory for it.
    detail::ScratchOperator* find(std::string_view name) noexcept;

private:
    std::unordered_map<std::string_view, detail::ScratchOperator*> known_;
};

}  // namespace tensorpool::arena
