#include <dlfcn.h>

#include "platform/process/dynamic_library.hpp"

namespace tensorpool::platform {

const char* const cuda_driver_name = "libcuda.so.1";

bool DynamicLibrary::open(const std::string& name) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return true;
    const char* const text = dlerror();
    problem_ = text != nullptr ? text : "dlopen failed without a message";
    return false;
}

void* DynamicLibrary::find(const char* symbol) const noexcept {
    return dlsym(handle_, symbol);
}

}  // namespace tensorpool::platform
