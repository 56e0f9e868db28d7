#pragma once

// Boost.Lockfree would pack a pointer and a tag of 16 bits into one word. In two words the tag has
// 64 bits, and Boost.Atomic exchanges both at once (cmpxchg16b, casp); but the thread sanitizer
// sees the standard library's atomics only.
#include <boost/lockfree/detail/prefix.hpp>
#undef BOOST_LOCKFREE_PTR_COMPRESSION
#ifndef __SANITIZE_THREAD__
#define BOOST_LOCKFREE_FORCE_BOOST_ATOMIC
#ifdef __x86_64__
// As every processor does since 2006; gcc tells it with -mcx16 only.
#define BOOST_ATOMIC_DETAIL_X86_HAS_CMPXCHG16B 1
#endif
#endif

// The only constructor that takes an allocator asserts a capacity that is known at compile time, in
// builds for debugging; without one it makes a stack that grows, which is what we want.
#define BOOST_DISABLE_ASSERTS
#include <boost/lockfree/stack.hpp>
#undef BOOST_DISABLE_ASSERTS
#include <algorithm>
#include <cstddef>
#include <new>

#include "pages/record_arena.hpp"

namespace tensorpool::blocks {

/// Lets Boost.Lockfree take its nodes from the pool's records.
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
        // A free node is taken for one of two words that are exchanged at once, whatever T says.
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

/// Nodes live as long as the records.
template <class T>
using RecordStack = boost::lockfree::stack<T, boost::lockfree::allocator<RecordAllocator<T>>>;

static_assert(sizeof(boost::lockfree::detail::tagged_ptr<char>::tag_t) * 8 >= 40,
              "16 bits are counted through in milliseconds");

}  // namespace tensorpool::blocks
