#pragma once

#include <dlfcn.h>

#include <string>

namespace tensorpool::platform {

/// The name under which the system finds the driver of NVIDIA's devices, if it is installed.
inline constexpr const char* cuda_driver_name = "libcuda.so.1";

/// A library that is loaded at run time. It is never unloaded: its threads may run for as long as
/// the process exists.
class DynamicLibrary {
public:
    DynamicLibrary() noexcept = default;

    /// Opens the library by a name that the system searches for, or by a path. Returns false on
    /// failure and sets `problem` to the system's message. Throws std::bad_alloc.
    [[nodiscard]] bool open(const std::string& name) {
        handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ != nullptr) return true;
        const char* const text = dlerror();
        problem_ = text != nullptr ? text : "dlopen failed without a message";
        return false;
    }
    /// Returns the function or object of this name; nullptr if there is none. REQUIRES: the library
    /// is open.
    void* find(const char* symbol) const noexcept { return dlsym(handle_, symbol); }

    const std::string& problem() const noexcept { return problem_; }

private:
    void* handle_ = nullptr;
    std::string problem_;
};

}  // namespace tensorpool::platform
