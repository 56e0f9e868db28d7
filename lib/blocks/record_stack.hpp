#pragma once

// By default, Boost.Lockfree packs a pointer and a tag of 16 bits into one word. Without that
// compression the tag has 64 bits, and Boost.Atomic exchanges both words at once (cmpxchg16b,
// casp). The thread sanitizer supports only the standard library's atomics, so Boost.Atomic is not
// used with it.
#include <boost/lockfree/detail/prefix.hpp>
#undef BOOST_LOCKFREE_PTR_COMPRESSION
#ifndef __SANITIZE_THREAD__
#define BOOST_LOCKFREE_FORCE_BOOST_ATOMIC
#ifdef __x86_64__
// Every x86-64 processor since 2006 has the instruction; gcc reports it only with -mcx16.
#define BOOST_ATOMIC_DETAIL_X86_HAS_CMPXCHG16B 1
#endif
#endif

// The only constructor that takes an allocator asserts, in debug builds, that the capacity is known
// at compile time. Without that assertion it makes a stack that grows, as is needed here.
#define BOOST_DISABLE_ASSERTS
#include <boost/lockfree/stack.hpp>
#undef BOOST_DISABLE_ASSERTS
#include <algorithm>
#include <cstddef>
#include <new>

#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// An allocator that lets Boost.Lockfree take its nodes from the pool's records. It never frees.
template <class T>
struct RecordAllocator {
    using value_type = T;
    template <class U>
    struct rebind {
        using other = RecordAllocator<U>;
    };

    explicit RecordAllocator(pages::RecordArena& arena) noexcept : records(&arena) {}
    template <class U>
    RecordAllocator(const RecordAllocator<U>& other) noexcept : records(other.records) {}

    T* allocate(std::size_t count) {
        // The stack treats a free node as two words that it exchanges at once, so a node needs the
        // alignment of two words even if T needs less.
        constexpr std::size_t alignment = std::max(alignof(T), 2 * sizeof(void*));
        void* const memory = records->allocate(count * sizeof(T), alignment);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<T*>(memory);
    }
    void deallocate(T*, std::size_t) noexcept {}
    bool operator==(const RecordAllocator& other) const noexcept {
        return records == other.records;
    }

    pages::RecordArena* records;
};

/// A lock-free stack whose nodes live as long as the records.
template <class T>
using RecordStack = boost::lockfree::stack<T, boost::lockfree::allocator<RecordAllocator<T>>>;

static_assert(sizeof(boost::lockfree::detail::tagged_ptr<char>::tag_t) * 8 >= 40,
              "a tag of 16 bits wraps around within milliseconds");

}  // namespace tensorpool::blocks
