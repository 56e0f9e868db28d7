#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "models/subject.hpp"

namespace tensorpool::testing {

/// Pools that go wrong once in a while. A test that is worth its time finds each of them. They do
/// what they do under a lock, so that it is the fault that is found and no other.

/// Hands out a block again that is in use; takes it back twice.
class HandsOutTwice : public Subject {
public:
    using Subject::Subject;
    void* allocate(std::size_t bytes) override;
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) override;
    void deallocate(void* p) override;
    void deallocate(void* p, std::size_t bytes) override;
    void deallocate(void* p, std::size_t bytes, std::size_t alignment) override;

private:
    bool was_given_twice(void* p);

    std::mutex mutex_;
    unsigned calls_ = 0;
    void* last_ = nullptr;  // in use
    std::size_t last_bytes_ = 0;
    std::map<void*, unsigned> given_again_;
};

/// Forgets to take a block back.
class ForgetsAFree : public Subject {
public:
    using Subject::Subject;
    void deallocate(void* p) override;

private:
    std::mutex mutex_;
    unsigned calls_ = 0;
};

/// Gives zeros of which one is none.
class LeavesDirt : public Subject {
public:
    using Subject::Subject;
    void* allocate_zeroed(std::size_t count, std::size_t element_bytes) override;

private:
    std::mutex mutex_;
    unsigned calls_ = 0;
};

/// Loses the last byte of what a block held when it moves.
class LosesAByte : public Subject {
public:
    using Subject::Subject;
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) override;
};

/// "twice", "forget", "dirt", "lose"; the pool as it is for any other name.
std::unique_ptr<Subject> subject_with_fault(std::string_view name, MemoryPool& pool);

}  // namespace tensorpool::testing
