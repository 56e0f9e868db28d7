#pragma once

#include <cstddef>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::testing {

/// The pool as the tests call it. A test can derive from it to plant a fault between itself and the
/// pool.
class Subject {
public:
    explicit Subject(MemoryPool& pool) : pool_(pool) {}
    virtual ~Subject() = default;
    Subject(const Subject&) = delete;
    Subject& operator=(const Subject&) = delete;

    virtual void* allocate(std::size_t bytes) { return pool_.allocate(bytes); }
    virtual void* allocate(std::size_t bytes, std::size_t alignment) {
        return pool_.allocate(bytes, alignment);
    }
    virtual void* allocate_zeroed(std::size_t count, std::size_t element_bytes) {
        return pool_.allocate_zeroed(count, element_bytes);
    }
    virtual void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) {
        return pool_.reallocate(p, old_bytes, new_bytes);
    }
    virtual void deallocate(void* p) { pool_.deallocate(p); }
    virtual void deallocate(void* p, std::size_t bytes) { pool_.deallocate(p, bytes); }
    virtual void deallocate(void* p, std::size_t bytes, std::size_t alignment) {
        pool_.deallocate(p, bytes, alignment);
    }
    virtual bool owns(const void* p) const { return pool_.owns(p); }

    MemoryPool& pool() const { return pool_; }

private:
    MemoryPool& pool_;
};

}  // namespace tensorpool::testing
