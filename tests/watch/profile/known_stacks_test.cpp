#include "watch/profile/profiled_blocks.hpp"

#include <gtest/gtest.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace tensorpool::watch {
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

#ifdef __linux__
/// Two pages of memory that stand for a stack, with a return address on each.
class MadeStack : public ::testing::Test {
protected:
    static constexpr std::size_t page = 4096;

    MadeStack()
        : words_(static_cast<std::uintptr_t*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
        stack_.native_count = 2;
        for (const std::size_t i : {0, 1}) {
            std::uintptr_t* const slot = words_ + (i + 1) * page / sizeof *words_ - 1;
            *slot = 1000 + i;
            stack_.addresses[i] = *slot - 1;
            stack_.slots[i] = slot;
        }
    }
    ~MadeStack() override { munmap(words_, 2 * page); }

    SiteRecord* find() const { return known_.find(words_, 0); }
    void add() { known_.add(words_, 0, stack_, site_); }
    void close_outer_page() { mprotect(words_ + page / sizeof *words_, page, PROT_NONE); }

    platform::StackBuffers stack_;
    SiteRecord site_{};

private:
    std::uintptr_t* words_;
    KnownStacks known_;
};

TEST_F(MadeStack, IsRecognized) {
    EXPECT_EQ(find(), nullptr);
    add();
    EXPECT_EQ(find(), &site_);
}

TEST_F(MadeStack, IsNotReadBeyondItsEnd) {
    add();
    close_outer_page();
    EXPECT_EQ(find(), nullptr);
    add();
    EXPECT_EQ(find(), nullptr);
}

TEST_F(MadeStack, WithAFunctionThatASignalInterruptedIsNotNoted) {
    stack_.slots[1] = nullptr;
    add();
    EXPECT_EQ(find(), nullptr);
}
#endif

}  // namespace
}  // namespace tensorpool::watch
