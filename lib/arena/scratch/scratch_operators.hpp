#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <tensorpool/scratch_report.hpp>

namespace tensorpool::detail {

/// What is known of an operator. Relaxed throughout: figures that order nothing.
struct ScratchOperator {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> peak_bytes = 0;
    std::atomic<std::uint64_t> need_bytes = 0;  ///< the peak, and room for alignment
    std::atomic<std::uint64_t> growths = 0;
    std::atomic<std::uint64_t> grown_bytes = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::arena {

/// All operators of the process by name. They are added and never removed, so that a pointer to one
/// stays good. Thread-safe; the only one is the process's.
class ScratchOperators {
public:
    struct Entry {
        std::string_view name;  ///< lives as long as the operator
        detail::ScratchOperator* found;
    };
    /// Throws std::bad_alloc.
    Entry find_or_add(std::string_view name);
    /// "" for none.
    std::string name_of(const detail::ScratchOperator* known) const;
    ScratchReport report() const;

    /// Around a fork.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    mutable std::mutex mutex_;
    std::map<std::string, detail::ScratchOperator, std::less<>> operators_;
};

ScratchOperators& scratch_operators();

}  // namespace tensorpool::arena
