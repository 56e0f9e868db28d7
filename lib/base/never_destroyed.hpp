#pragma once

#include <new>
#include <utility>

namespace tensorpool::base {

/// Holds an object that is made by constant initialisation and never destroyed, so that static
/// constructors and destructors may use it.
template <class T>
class NeverDestroyed {
public:
    constexpr NeverDestroyed() noexcept : value_() {}
    constexpr ~NeverDestroyed() {}
    NeverDestroyed(const NeverDestroyed&) = delete;
    NeverDestroyed& operator=(const NeverDestroyed&) = delete;

    constexpr T& get() noexcept { return value_; }
    T* operator->() noexcept { return &value_; }

private:
    union {
        T value_;
    };
};

}  // namespace tensorpool::base
