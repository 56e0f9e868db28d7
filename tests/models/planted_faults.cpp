#include "models/planted_faults.hpp"

#include <algorithm>
#include <cstring>

namespace tensorpool::testing {
namespace {

// Frequent enough for a short run, and rare enough to need a close check.
constexpr unsigned calls_per_fault = 7;

}  // namespace

void* HandsOutTwice::allocate(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    if (++calls_ % calls_per_fault == 0 && last_ != nullptr && bytes <= last_bytes_ && bytes != 0) {
        ++returned_again_[last_];
        return last_;
    }
    void* const p = Subject::allocate(bytes);
    if (p == nullptr || bytes > detail::largest_block_bytes) return p;
    last_ = p;
    last_bytes_ = pool().usable_size(p);
    return p;
}

bool HandsOutTwice::was_returned_twice(void* p) {
    const std::lock_guard guard(mutex_);
    const auto found = returned_again_.find(p);
    if (found == returned_again_.end()) {
        if (p == last_) last_ = nullptr;
        return false;
    }
    if (--found->second == 0) returned_again_.erase(found);
    return true;
}

void* HandsOutTwice::reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) {
    void* const moved = new_bytes == 0 ? nullptr : Subject::allocate(new_bytes);
    if (moved != nullptr && p != nullptr) std::memcpy(moved, p, std::min(old_bytes, new_bytes));
    if (p != nullptr) deallocate(p);
    return moved;
}

void HandsOutTwice::deallocate(void* p) {
    if (!was_returned_twice(p)) Subject::deallocate(p);
}

void HandsOutTwice::deallocate(void* p, std::size_t bytes) {
    if (!was_returned_twice(p)) Subject::deallocate(p, bytes);
}

void HandsOutTwice::deallocate(void* p, std::size_t bytes, std::size_t alignment) {
    if (!was_returned_twice(p)) Subject::deallocate(p, bytes, alignment);
}

void ForgetsAFree::deallocate(void* p) {
    {
        const std::lock_guard guard(mutex_);
        if (++calls_ % calls_per_fault == 0) return;
    }
    Subject::deallocate(p);
}

void* LeavesDirt::allocate_zeroed(std::size_t count, std::size_t element_bytes) {
    const std::lock_guard guard(mutex_);
    void* const p = Subject::allocate_zeroed(count, element_bytes);
    if (p != nullptr && ++calls_ % calls_per_fault == 0) {
        static_cast<char*>(p)[count * element_bytes / 2] = 1;
    }
    return p;
}

void* LosesAByte::reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes) {
    void* const moved = Subject::reallocate(p, old_bytes, new_bytes);
    if (moved == p || moved == nullptr || p == nullptr) return moved;
    static_cast<char*>(moved)[std::min(old_bytes, new_bytes) - 1] ^= 1;
    return moved;
}

std::unique_ptr<Subject> subject_with_fault(std::string_view name, MemoryPool& pool) {
    if (name == "twice") return std::make_unique<HandsOutTwice>(pool);
    if (name == "forget") return std::make_unique<ForgetsAFree>(pool);
    if (name == "dirt") return std::make_unique<LeavesDirt>(pool);
    if (name == "lose") return std::make_unique<LosesAByte>(pool);
    return std::make_unique<Subject>(pool);
}

}  // namespace tensorpool::testing
