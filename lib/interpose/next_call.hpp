#pragma once

#include <atomic>

#include "platform/process/next_function_linux.hpp"

namespace tensorpool::interpose {

/// A function that follows this library in the loader's order. It is looked up while this library
/// is loaded, or at the first call if a library that was loaded earlier makes it. A look-up takes
/// the loader's lock, which a thread that waits for new threads may hold.
template <class Type>
class Next {
public:
    constexpr explicit Next(const char* name) noexcept : name_(name) {}

    Type get() noexcept {
        // Relaxed: it leads to code.
        Type function = function_.load(std::memory_order_relaxed);
        if (function == nullptr) {
            function = reinterpret_cast<Type>(platform::next_function(name_));
            function_.store(function, std::memory_order_relaxed);
        }
        return function;
    }

private:
    const char* name_;
    std::atomic<Type> function_ = nullptr;
};

}  // namespace tensorpool::interpose
