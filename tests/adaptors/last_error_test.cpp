#include <tensorpool/tensorpool.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>

// Uses public functions only, so that it can test a shared library too.

namespace {

TEST(LastError, EmptyBeforeTheFirstFailureOfAThread) {
    EXPECT_EQ(tensorpool_allocate(nullptr, 8), nullptr);
    std::thread([] { EXPECT_STREQ(tensorpool_last_error(), ""); }).join();
}

TEST(LastError, EachThreadHasItsOwn) {
    EXPECT_EQ(tensorpool_allocate(nullptr, 8), nullptr);
    const std::string before = tensorpool_last_error();
    std::thread([] {
        EXPECT_LT(tensorpool_report_json(nullptr, nullptr, 0), 0);
        EXPECT_EQ(std::string(tensorpool_last_error()).find("tensorpool: report_json: "), 0U);
    }).join();
    EXPECT_EQ(before, tensorpool_last_error());
}

TEST(LastError, SuccessDoesNotChangeIt) {
    EXPECT_EQ(tensorpool_allocate(nullptr, 8), nullptr);
    const std::string before = tensorpool_last_error();
    void* const block = tensorpool_allocate(tensorpool_global(), 8);
    EXPECT_NE(block, nullptr);
    tensorpool_deallocate(tensorpool_global(), block);
    EXPECT_EQ(before, tensorpool_last_error());
}

struct FailsAtTheEndOfItsThread {
    ~FailsAtTheEndOfItsThread() {
        EXPECT_EQ(tensorpool_allocate(nullptr, 8), nullptr);
        EXPECT_EQ(std::string(tensorpool_last_error()).find("tensorpool: a call failed"), 0U);
    }
};

TEST(LastError, IsGenericLateAtTheEndOfAThread) {
    std::thread([] {
        thread_local FailsAtTheEndOfItsThread late;
        static_cast<void>(late);
        EXPECT_EQ(tensorpool_allocate(nullptr, 8), nullptr);
    }).join();
}

}  // namespace
