#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "models/subject.hpp"

namespace tensorpool::testing {

// Faulty pools, which fail once in a while; a useful test finds each of them. They work under a
// lock, so that the planted fault is the only one.

/// Returns a block again that is in use, and accepts two frees of it.
class HandsOutTwice : public Subject {
public:
    using Subject::Subject;
    void* allocate(std::size_t bytes) override;
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) override;
    void deallocate(void* p) override;
    void deallocate(void* p, std::size_t bytes) override;
    void deallocate(void* p, std::size_t bytes, std::size_t alignment) override;

private:
    bool was_returned_twice(void* p);

    std::mutex mutex_;
    unsigned calls_ = 0;
    void* last_ = nullptr;  // in use
    std::size_t last_bytes_ = 0;
    std::map<void*, unsigned> returned_again_;
};

/// Ignores some frees.
class ForgetsAFree : public Subject {
public:
    using Subject::Subject;
    void deallocate(void* p) override;

private:
    std::mutex mutex_;
    unsigned calls_ = 0;
};

/// Returns zeroed memory with one byte that is not zero.
class LeavesDirt : public Subject {
public:
    using Subject::Subject;
    void* allocate_zeroed(std::size_t count, std::size_t element_bytes) override;

private:
    std::mutex mutex_;
    unsigned calls_ = 0;
};

/// Changes the last byte of the content when a block moves.
class LosesAByte : public Subject {
public:
    using Subject::Subject;
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) override;
};

/// Returns the subject for a fault: "twice", "forget", "dirt" or "lose". Any other name returns one
/// without faults.
std::unique_ptr<Subject> subject_with_fault(std::string_view name, MemoryPool& pool);

}  // namespace tensorpool::testing
