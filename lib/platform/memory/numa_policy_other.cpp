// macOS has one node. Windows takes a node with each allocation, and not at all for files.

#include "platform/memory/numa_policy.hpp"

namespace tensorpool::platform {

bool set_numa_policy(void*, std::size_t, NumaPolicy, unsigned) noexcept {
    return false;
}

ThreadNumaPolicy::ThreadNumaPolicy(NumaPolicy, unsigned) noexcept {}
ThreadNumaPolicy::~ThreadNumaPolicy() = default;

}  // namespace tensorpool::platform
