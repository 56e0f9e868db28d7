// Operators that call other operators, as those of the C++ library do: a program may replace the
// latter. With Checks::hardened, those of arrays free blocks themselves where nothing is replaced.
// What a delete states about the block is ignored, except by a hardened pool. It may be wrong if a
// class has no virtual destructor, and the address determines the size.

#include "interpose/blocks_of_pool.hpp"

using std::align_val_t;
using std::nothrow_t;
using std::size_t;

namespace interpose = tensorpool::interpose;
using interpose::AllocatedBy;

namespace {

constexpr size_t default_alignment = 0;

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
    if (!interpose::is_hardened()) return ::operator new(bytes);
    return interpose::as_array(::operator new(bytes));
}
TENSORPOOL_API void* operator new[](size_t bytes, align_val_t alignment) {
    if (!interpose::is_hardened()) return ::operator new(bytes, alignment);
    return interpose::as_array(::operator new(bytes, alignment));
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
    interpose::deallocate(
        p, {interpose::at_least_1(bytes), default_alignment, AllocatedBy::new_object});
}
TENSORPOOL_API void operator delete(void* p, const nothrow_t&) noexcept {
    ::operator delete(p);
}
TENSORPOOL_API void operator delete(void* p, size_t bytes, align_val_t alignment) noexcept {
    if (!interpose::has_own_aligned_delete()) return ::operator delete(p, alignment);
    interpose::deallocate(
        p, {interpose::at_least_1(bytes), static_cast<size_t>(alignment), AllocatedBy::new_object});
}
TENSORPOOL_API void operator delete(void* p, align_val_t alignment, const nothrow_t&) noexcept {
    ::operator delete(p, alignment);
}
TENSORPOOL_API void operator delete[](void* p) noexcept {
    if (!interpose::is_hardened() || !interpose::has_own_operators()) return ::operator delete(p);
    interpose::deallocate(p, {.alignment = default_alignment, .by = AllocatedBy::new_array});
}
TENSORPOOL_API void operator delete[](void* p, align_val_t alignment) noexcept {
    if (!interpose::is_hardened() || !interpose::has_own_operators())
        return ::operator delete(p, alignment);
    interpose::deallocate(
        p, {.alignment = static_cast<size_t>(alignment), .by = AllocatedBy::new_array});
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
