// The functions that the Python package calls through ctypes. No exception leaves them.

#include <c10/core/CPUAllocator.h>

#include <tensorpool/torch.hpp>

extern "C" {

/// Makes PyTorch's CPU tensors come from the global pool. Returns 1 if they do now, and 0 if an
/// allocator of a higher priority is registered or there is no memory.
TENSORPOOL_API int tensorpool_torch_enable() {
    try {
        return tensorpool::enable_torch() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

/// Restores the allocator that was registered before. Returns 1 if it did, otherwise 0.
TENSORPOOL_API int tensorpool_torch_disable() {
    try {
        return tensorpool::disable_torch() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

/// Returns 1 if a CPU tensor that is made now comes from the global pool, otherwise 0.
TENSORPOOL_API int tensorpool_torch_is_enabled() {
    try {
        return tensorpool::torch_is_enabled() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

/// Returns an address in the libc10 that this library is linked to.
TENSORPOOL_API const void* tensorpool_torch_address_in_c10() {
    return reinterpret_cast<const void*>(&c10::SetCPUAllocator);
}

}  // extern "C"
