// What the Python package calls, through ctypes: no exception gets out.

#include <c10/core/CPUAllocator.h>

#include <tensorpool/torch.hpp>

extern "C" {

/// 1 where it is enabled now, 0 where something else keeps its place or there is no memory.
TENSORPOOL_API int tensorpool_torch_enable() {
    try {
        return tensorpool::enable_torch() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

TENSORPOOL_API int tensorpool_torch_disable() {
    try {
        return tensorpool::disable_torch() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

TENSORPOOL_API int tensorpool_torch_is_enabled() {
    try {
        return tensorpool::torch_is_enabled() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

/// An address in the library of PyTorch's that this one was joined to.
TENSORPOOL_API const void* tensorpool_torch_address_in_c10() {
    return reinterpret_cast<const void*>(&c10::SetCPUAllocator);
}

}  // extern "C"
