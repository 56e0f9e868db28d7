#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(DLFO_STRUCT_HAS_EH_DBASE)

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "platform/stacks/program_stack.hpp"
#include "platform/unwind/frame.hpp"

namespace tensorpool::platform::unwind {
namespace {

/// Makes stacks of random words that a stack could contain, and walks them.
class RandomStacks {
public:
    RandomStacks() {
        std::uintptr_t frames[64];
        code_.assign(frames, frames + capture_stack(frames, 64));
        for (const char* const name : {"malloc", "qsort", "printf", "getaddrinfo", "raise"}) {
            code_.push_back(reinterpret_cast<std::uintptr_t>(dlsym(RTLD_DEFAULT, name)));
        }
        words_.resize(4096);
    }

    std::size_t walk() {
        for (std::uintptr_t& word : words_) word = any_word();
        Registers registers{};
        for (std::uintptr_t& value : registers.value) value = any_word();
        // The innermost frame is real.
        registers.value[stack_pointer] = on_stack() & ~std::uintptr_t{7};
        Frame frame(registers, any_code());
        std::size_t steps = 0;
        while (steps != max_steps && frame.step()) ++steps;
        return steps;
    }
    static constexpr std::size_t max_steps = 200;

private:
    std::uintptr_t any_code() {
        const std::uintptr_t known = code_[random_() % code_.size()];
        return random_() % 4 == 0 ? known + random_() % 4096 : known + 1;
    }
    std::uintptr_t on_stack() {
        return reinterpret_cast<std::uintptr_t>(&words_[random_() % words_.size()]);
    }
    std::uintptr_t any_word() {
        switch (random_() % 8) {
            case 0:
                return random_();
            case 1:
                return random_() % 4096;
            case 2:
                return on_stack() + random_() % 16;
            case 3:
                return on_stack();
            case 4:
                return reinterpret_cast<std::uintptr_t>(&words_) & ~std::uintptr_t{7};
            default:
                return any_code();
        }
    }

    std::mt19937_64 random_{1};
    std::vector<std::uintptr_t> code_;
    std::vector<std::uintptr_t> words_;
};

TEST(Frame, StacksOfAnyWordsEnd) {
    RandomStacks stacks;
    std::size_t most = 0;
    for (int i = 0; i < 5'000; ++i) most = std::max(most, stacks.walk());
    EXPECT_GT(most, 5U);  // so they were not rejected at once
}

}  // namespace
}  // namespace tensorpool::platform::unwind

#endif
