#include "statistics/profile/known_stacks.hpp"

#include <gtest/gtest.h>

namespace tensorpool::statistics {
namespace {

/// A stack that is noted, and looked for, from calls that differ.
class KnownStacksTest : public ::testing::Test {
protected:
    // Finds, and then notes, from the same frame.
    [[gnu::noinline]] SiteRecord* find_and_add(SiteRecord& site, std::uint64_t python = 0) {
        const void* const frame = __builtin_frame_address(0);
        SiteRecord* const found = table().find(frame, python);
        platform::ProgramFrame frames[64];
        platform::StackBuffers buffers;
        platform::capture_program_stack(frames, 64, buffers);
        table().add(frame, python, buffers, site);
        return found;
    }
    [[gnu::noinline]] SiteRecord* one_way(SiteRecord& site, std::uint64_t python = 0) {
        SiteRecord* const found = find_and_add(site, python);
        asm volatile("" ::: "memory");
        return found;
    }
    [[gnu::noinline]] SiteRecord* other_way(SiteRecord& site, std::uint64_t python = 0) {
        SiteRecord* const found = find_and_add(site, python);
        asm volatile("nop" ::: "memory");
        return found;
    }
    static KnownStacks& table() {
        static KnownStacks known;
        return known;
    }

    static inline SiteRecord a_{};
    static inline SiteRecord b_{};
};

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(KnownStacksTest, RecognizesTheStackFromWhichItWasNoted) {
    for (int i = 0; i < 3; ++i) {
        SiteRecord* const found = one_way(a_);
        EXPECT_EQ(found, i == 0 ? nullptr : &a_);
    }
}
#endif

// The two functions have frames of the same size, so the stacks differ by return addresses only.
TEST_F(KnownStacksTest, OtherCallerAtTheSamePlaceIsAnotherStack) {
    for (int i = 0; i < 3; ++i) {
        SiteRecord* found = one_way(a_);
        EXPECT_TRUE(found == nullptr || found == &a_);
        found = other_way(b_);
        EXPECT_TRUE(found == nullptr || found == &b_);
    }
}

TEST_F(KnownStacksTest, OtherPythonStackIsAnotherStack) {
    for (int i = 0; i < 3; ++i) {
        SiteRecord* found = one_way(a_, 1);
        EXPECT_TRUE(found == nullptr || found == &a_);
        found = one_way(b_, 2);
        EXPECT_TRUE(found == nullptr || found == &b_);
    }
}

}  // namespace
}  // namespace tensorpool::statistics
