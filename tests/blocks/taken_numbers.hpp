#pragma once

#include <vector>

#include "blocks/thread_registry.hpp"

namespace tensorpool::testing {

/// Takes pool numbers, so that the next pool that is made gets `next` or a higher number.
class TakenNumbers {
public:
    explicit TakenNumbers(unsigned next) {
        unsigned number = take();
        while (number + 1 < next) number = take();
        if (number >= next) give_back();
    }
    ~TakenNumbers() {
        while (!numbers_.empty()) give_back();
    }
    TakenNumbers(const TakenNumbers&) = delete;
    TakenNumbers& operator=(const TakenNumbers&) = delete;

private:
    unsigned take() { return numbers_.emplace_back(blocks::PoolNumbers::take()); }
    void give_back() {
        blocks::PoolNumbers::give_back(numbers_.back());
        numbers_.pop_back();
    }

    std::vector<unsigned> numbers_;
};

}  // namespace tensorpool::testing
