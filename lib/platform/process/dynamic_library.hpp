#pragma once

#include <string>

namespace tensorpool::platform {

/// The name under which the system finds the driver of NVIDIA's devices, where it is installed.
extern const char* const cuda_driver_name;

/// A library that is loaded while the program runs. It stays loaded: threads of its own may run in
/// it for as long as the process lives.
class DynamicLibrary {
public:
    DynamicLibrary() noexcept = default;

    /// By a name that the system looks for, or a path. False on failure: then `problem` is the
    /// system's word for it. Throws std::bad_alloc.
    [[nodiscard]] bool open(const std::string& name);
    /// The function or object of this name; nullptr where there is none. REQUIRES: it is open.
    void* find(const char* symbol) const noexcept;

    const std::string& problem() const noexcept { return problem_; }

private:
    void* handle_ = nullptr;
    std::string problem_;
};

}  // namespace tensorpool::platform
