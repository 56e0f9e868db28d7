#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "platform/process/dynamic_library.hpp"

namespace tensorpool::platform {

const char* const cuda_driver_name = "nvcuda.dll";

bool DynamicLibrary::open(const std::string& name) {
    handle_ = LoadLibraryA(name.c_str());
    if (handle_ != nullptr) return true;
    problem_ = name + ": LoadLibrary failed with error " + std::to_string(GetLastError());
    return false;
}

void* DynamicLibrary::find(const char* symbol) const noexcept {
    return reinterpret_cast<void*>(GetProcAddress(static_cast<HMODULE>(handle_), symbol));
}

}  // namespace tensorpool::platform
