#pragma once

#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>

#include "stress/report.hpp"

namespace tensorpool::stress {

/// A map of all blocks in use of all pools, which detects overlaps at once. Its lock orders all
/// threads and so hides missing synchronization in the pool. Therefore it is an optional check.
class LiveMap {
public:
    void insert(const void* p, std::size_t bytes) {
        const auto begin = reinterpret_cast<std::uintptr_t>(p);
        const std::lock_guard guard(mutex_);
        const auto next = ends_.lower_bound(begin);
        const bool overlaps_next = next != ends_.end() && next->first < begin + bytes;
        const bool overlaps_last = next != ends_.begin() && std::prev(next)->second > begin;
        if (overlaps_next || overlaps_last) found("block %p of %zu B overlaps another", p, bytes);
        ends_.emplace_hint(next, begin, begin + bytes);
    }
    void erase(const void* p) {
        const std::lock_guard guard(mutex_);
        if (ends_.erase(reinterpret_cast<std::uintptr_t>(p)) != 1)
            found("block %p is not in the map", p);
    }

private:
    std::mutex mutex_;
    std::map<std::uintptr_t, std::uintptr_t> ends_;
};

}  // namespace tensorpool::stress
