#include "stress/planned/hands.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>

namespace tensorpool::stress {

void HeldBlock::fill() const noexcept {
    std::fill_n(words, count, number);
}

void HeldBlock::verify() const {
    for (const std::uint64_t word : std::span(words, count)) {
        if (word == number) continue;
        char text[128];
        std::snprintf(text, sizeof text, "block %llu at %p was written over with %llu",
                      static_cast<unsigned long long>(number), static_cast<void*>(words),
                      static_cast<unsigned long long>(word));
        throw std::runtime_error(text);
    }
}

Hands::Hands(PlannedArena& arena, unsigned threads, bool plant) : arena_(arena), plant_(plant) {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
}

Hands::~Hands() {
    {
        const std::lock_guard guard(mutex_);
        ends_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Hands::take(const HeldBlock& block) {
    {
        const std::lock_guard guard(mutex_);
        // Every third block is freed next, the others after all earlier ones.
        if (block.number % 3 == 0) {
            held_.push_front(block);
        } else {
            held_.push_back(block);
        }
        ++unfreed_;
    }
    changed_.notify_all();
}

void Hands::wait_for(std::size_t kept) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return unfreed_ <= kept || problem_ != nullptr; });
}

void Hands::rethrow() {
    const std::lock_guard guard(mutex_);
    if (problem_ != nullptr) std::rethrow_exception(problem_);
}

void Hands::work() {
    try {
        while (free_one()) {
        }
    } catch (...) {
        const std::lock_guard guard(mutex_);
        problem_ = std::current_exception();
        changed_.notify_all();
    }
}

bool Hands::free_one() {
    HeldBlock block;
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !held_.empty() || ends_; });
        if (held_.empty()) return false;
        block = held_.front();
        held_.pop_front();
    }
    free(block);
    {
        const std::lock_guard guard(mutex_);
        --unfreed_;
    }
    changed_.notify_all();
    return true;
}

void Hands::free(const HeldBlock& block) {
    block.verify();
    arena_.deallocate(block.words);
    if (!plant_) return;
    thread_local std::uint64_t* freed_before = nullptr;
    if (freed_before != nullptr) *freed_before = 0;
    freed_before = block.words;
}

}  // namespace tensorpool::stress
