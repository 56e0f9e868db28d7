#include "platform/memory/numa_policy.hpp"

#include <sys/syscall.h>

#include <climits>

#include "platform/files/system_files_linux.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

// From the kernel's mempolicy.h.
constexpr int policy_default = 0;
constexpr int policy_preferred = 1;
constexpr int policy_interleave = 3;

constexpr unsigned bits_per_word = sizeof(unsigned long) * CHAR_BIT;
// The kernel reads one bit less than the number it is given.
constexpr unsigned long bits_passed = max_numa_nodes + 1UL;

/// A policy in the kernel's form: its number, and a set of nodes.
struct Policy {
    int number = policy_default;
    unsigned long nodes[max_numa_nodes / bits_per_word] = {};

    Policy(NumaPolicy policy, unsigned node) noexcept {
        if (policy == NumaPolicy::prefer) {
            number = policy_preferred;
            add(node);
        } else if (policy == NumaPolicy::interleave) {
            number = policy_interleave;
            const unsigned count = numa_node_count();
            for (unsigned each = 0; each < count; ++each) add(each);
        }
    }

    void add(unsigned node) noexcept {
        nodes[node / bits_per_word] |= 1UL << (node % bits_per_word);
    }
};

}  // namespace

bool set_numa_policy(void* address, std::size_t bytes, NumaPolicy policy, unsigned node) noexcept {
    const SystemCalls system_calls;
    if (node >= max_numa_nodes) return false;
    const Policy wanted(policy, node);
    return syscall(SYS_mbind, address, bytes, wanted.number, wanted.nodes, bits_passed, 0U) == 0;
}

ThreadNumaPolicy::ThreadNumaPolicy(NumaPolicy policy, unsigned node) noexcept {
    static_assert(sizeof nodes_before_ * CHAR_BIT >= max_numa_nodes);
    const SystemCalls system_calls;
    if (policy == NumaPolicy::none || node >= max_numa_nodes) return;
    const Policy wanted(policy, node);
    is_set_ = syscall(SYS_get_mempolicy, &before_, nodes_before_, bits_passed, nullptr, 0UL) == 0 &&
              syscall(SYS_set_mempolicy, wanted.number, wanted.nodes, bits_passed) == 0;
}

ThreadNumaPolicy::~ThreadNumaPolicy() {
    const SystemCalls system_calls;
    if (is_set_) syscall(SYS_set_mempolicy, before_, nodes_before_, bits_passed);
}

}  // namespace tensorpool::platform
