#pragma once

#include <new>
#include <utility>

namespace tensorpool::base {

/// Holds an object that is created by constant initialization and never destroyed. Static
/// constructors and destructors may therefore use it.
template <class T>
class NeverDestroyed {
public:
    constexpr NeverDestroyed() noexcept : value_() {}
    constexpr ~NeverDestroyed() {}

    constexpr T& get() noexcept { return value_; }
    T* operator->() noexcept { return &value_; }

private:
    union {
        T value_;
    };
};

/// The only object of this type in the process.
template <class T>
inline constinit NeverDestroyed<T> the_only;

}  // namespace tensorpool::base
