#include <c10/core/CPUAllocator.h>

#include <algorithm>
#include <mutex>

#include <tensorpool/torch.hpp>

namespace tensorpool {
namespace {

constinit std::mutex mutex;
// The allocator to register again, and the priority to use: PyTorch ignores a lower one.
constinit c10::Allocator* allocator_before = nullptr;
constinit std::uint8_t priority_in_force = 0;

}  // namespace

PooledTorchAllocator& global_torch_allocator() {
    static PooledTorchAllocator& allocator = *new PooledTorchAllocator(get_global_memory_pool());
    return allocator;
}

bool enable_torch(std::uint8_t priority) {
    const std::lock_guard lock(mutex);
    if (torch_is_enabled()) return true;
    c10::Allocator* const before = c10::GetCPUAllocator();
    priority = std::max(priority, priority_in_force);
    c10::SetCPUAllocator(&global_torch_allocator(), priority);
    if (!torch_is_enabled()) return false;
    allocator_before = before;
    priority_in_force = priority;
    return true;
}

bool disable_torch() {
    const std::lock_guard lock(mutex);
    if (!torch_is_enabled() || allocator_before == nullptr) return false;
    c10::SetCPUAllocator(allocator_before, priority_in_force);
    return !torch_is_enabled();
}

bool torch_is_enabled() {
    return c10::GetCPUAllocator() == &global_torch_allocator();
}

}  // namespace tensorpool
