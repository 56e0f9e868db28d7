// Operators that call other operators, as those of the C++ library do: a program may replace the
// latter. The size argument of a sized delete is ignored, except by a hardened pool. It may be
// wrong if a class has no virtual destructor, and the address determines the size.

#include <new>

#include <tensorpool/export.hpp>

#include "interpose/requests.hpp"

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

namespace interpose = tensorpool::interpose;

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

TENSORPOOL_API void operator delete(void* p, size_t bytes) noexcept {
    if (!interpose::has_own_delete()) return ::operator delete(p);
    interpose::deallocate(p, interpose::at_least_1(bytes));
}
TENSORPOOL_API void operator delete(void* p, const nothrow_t&) noexcept {
    ::operator delete(p);
}
TENSORPOOL_API void operator delete(void* p, size_t bytes, align_val_t alignment) noexcept {
    if (!interpose::has_own_aligned_delete()) return ::operator delete(p, alignment);
    interpose::deallocate(p, interpose::at_least_1(bytes));
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
