#pragma once

/// Chooses the NUMA nodes from which pages come. For pages of a file, the system uses the policy of
/// the thread that reads them in, not that of the mapping; files in memory are the exception
/// (kernel: admin-guide/mm/numa_memory_policy.rst). A policy is a hint and has no effect on a
/// machine with one node.

#include <cstddef>
#include <cstdint>

namespace tensorpool::platform {

enum class NumaPolicy : std::uint8_t { none, interleave, prefer };

/// Requests that pages of [address, address + bytes) that are not yet touched come from all nodes
/// in turn (`interleave`), or from `node`, or from other nodes if that one is full (`prefer`); or
/// removes the policy (`none`). Returns false on failure.
bool set_numa_policy(void* address, std::size_t bytes, NumaPolicy policy, unsigned node) noexcept;

/// While this object exists, pages that this thread reads in come from the chosen nodes. Changes
/// nothing with NumaPolicy::none or if the system refuses.
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
    unsigned long nodes_before_[16] = {};  // 1024 bits, the maximum that a kernel supports
};

}  // namespace tensorpool::platform
