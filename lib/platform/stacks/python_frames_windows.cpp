#include "platform/stacks/python_frames.hpp"

namespace tensorpool::platform {

bool find_python() noexcept {
    return false;
}

std::size_t capture_python_frames(PythonFrame*, std::size_t) noexcept {
    return 0;
}

std::uint64_t hash_python_stack(std::size_t) noexcept {
    return 0;
}

bool is_python_interpreter(std::uintptr_t) noexcept {
    return false;
}

bool runs_python_code(std::uintptr_t) noexcept {
    return false;
}

std::uint64_t identify_python_code(const void*) noexcept {
    return 0;
}

std::size_t name_python_code(const void*, char*, std::size_t) noexcept {
    return 0;
}

}  // namespace tensorpool::platform
