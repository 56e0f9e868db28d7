#pragma once

/// From which memory nodes pages come. Of pages of a file the system asks the thread that reads
/// them in, not the mapping, save for files that live in memory (kernel:
/// admin-guide/mm/numa_memory_policy.rst). All of it is a wish, and none where there is one node.

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

enum class NumaPolicy : std::uint8_t { none, interleave, prefer };

/// `prefer_numa_node` and `interleave_numa_nodes` of platform.hpp, or what ends them. False on
/// failure.
bool set_numa_policy(void* address, std::size_t bytes, NumaPolicy policy, unsigned node) noexcept;

/// As long as it lives, pages that this thread reads in come from these nodes. With
/// NumaPolicy::none, and where the system refuses, it changes nothing.
class ThreadNumaPolicy {
public:
    ThreadNumaPolicy(NumaPolicy policy, unsigned node) noexcept;
    ~ThreadNumaPolicy();
    ThreadNumaPolicy(const ThreadNumaPolicy&) = delete;
    ThreadNumaPolicy& operator=(const ThreadNumaPolicy&) = delete;

    bool is_set() const noexcept { return is_set_; }

private:
    bool is_set_ = false;
    int before_ = 0;
    unsigned long nodes_before_[16] = {};  // 1024, as many as a kernel knows
};

}  // namespace tensorpool::platform
