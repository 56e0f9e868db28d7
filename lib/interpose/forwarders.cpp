// Operators that call others, as those of the C++ library do: a program may have its own of those.
// The size that a sized delete gives is not looked at: where a class has no virtual destructor it
// may be wrong, and the address tells more.

#include <new>

#include <tensorpool/export.hpp>

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

namespace {

template <class... Arguments>
void* null_for_exception(Arguments... arguments) noexcept {
    try {
        return ::operator new(arguments...);
    } catch (...) {
        return nullptr;
    }
}
template <class... Arguments>
void* null_for_exception_of_array(Arguments... arguments) noexcept {
    try {
        return ::operator new[](arguments...);
    } catch (...) {
        return nullptr;
    }
}

}  // namespace

TENSORPOOL_API void* operator new(size_t bytes, const nothrow_t&) noexcept {
    return null_for_exception(bytes);
}
TENSORPOOL_API void* operator new(size_t bytes, align_val_t alignment, const nothrow_t&) noexcept {
    return null_for_exception(bytes, alignment);
}
TENSORPOOL_API void* operator new[](size_t bytes) {
    return ::operator new(bytes);
}
TENSORPOOL_API void* operator new[](size_t bytes, align_val_t alignment) {
    return ::operator new(bytes, alignment);
}
TENSORPOOL_API void* operator new[](size_t bytes, const nothrow_t&) noexcept {
    return null_for_exception_of_array(bytes);
}
TENSORPOOL_API void* operator new[](size_t bytes, align_val_t alignment,
                                    const nothrow_t&) noexcept {
    return null_for_exception_of_array(bytes, alignment);
}

TENSORPOOL_API void operator delete(void* p, size_t) noexcept {
    ::operator delete(p);
}
TENSORPOOL_API void operator delete(void* p, const nothrow_t&) noexcept {
    ::operator delete(p);
}
TENSORPOOL_API void operator delete(void* p, size_t, align_val_t alignment) noexcept {
    ::operator delete(p, alignment);
}
TENSORPOOL_API void operator delete(void* p, align_val_t alignment, const nothrow_t&) noexcept {
    ::operator delete(p, alignment);
}
TENSORPOOL_API void operator delete[](void* p) noexcept {
    ::operator delete(p);
}
TENSORPOOL_API void operator delete[](void* p, align_val_t alignment) noexcept {
    ::operator delete(p, alignment);
}
TENSORPOOL_API void operator delete[](void* p, size_t) noexcept {
    ::operator delete[](p);
}
TENSORPOOL_API void operator delete[](void* p, const nothrow_t&) noexcept {
    ::operator delete[](p);
}
TENSORPOOL_API void operator delete[](void* p, size_t, align_val_t alignment) noexcept {
    ::operator delete[](p, alignment);
}
TENSORPOOL_API void operator delete[](void* p, align_val_t alignment, const nothrow_t&) noexcept {
    ::operator delete[](p, alignment);
}
