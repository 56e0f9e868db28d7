#include <tensorpool/memory_lock.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include <tensorpool/tensorpool_models.h>

namespace {

TEST(CMemoryLock, OutcomeIsThatOfTheCppInterface) {
    const std::vector<std::byte> memory(100'000);
    tensorpool_memory_lock* const lock =
        tensorpool_memory_lock_create(memory.data(), memory.size());
    ASSERT_NE(lock, nullptr);
    tensorpool_lock_outcome outcome;
    outcome.struct_bytes = sizeof outcome;
    const tensorpool_status status = tensorpool_memory_lock_grow_to(lock, 50'000, &outcome);
    EXPECT_EQ(outcome.asked_bytes, 50'000U);
    if (status == tensorpool_ok) {
        EXPECT_EQ(outcome.limit, tensorpool_lock_limit_none);
        EXPECT_GE(outcome.locked_bytes, 50'000U);
    } else {
        EXPECT_EQ(status, tensorpool_out_of_memory);
        EXPECT_NE(outcome.limit, tensorpool_lock_limit_none);
        EXPECT_STRNE(tensorpool_last_error(), "");
    }
    EXPECT_EQ(tensorpool_memory_lock_locked_bytes(lock), outcome.locked_bytes);
    tensorpool_memory_lock_destroy(lock);
}

TEST(CMemoryLock, RefusalIsReportedWithItsReason) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "sanitizers let every lock of memory succeed without a system call";
#endif
    // Nothing is mapped in the first page of a process.
    auto* const nowhere = reinterpret_cast<const std::byte*>(4096);
    tensorpool_memory_lock* const lock = tensorpool_memory_lock_create(nowhere, 4096);
    EXPECT_EQ(tensorpool_memory_lock_grow_to(lock, 4096, nullptr), tensorpool_out_of_memory);
    EXPECT_NE(std::string(tensorpool_last_error()).find("lock 4 KiB"), std::string::npos)
        << tensorpool_last_error();
    EXPECT_EQ(tensorpool_memory_lock_locked_bytes(lock), 0U);
    tensorpool_memory_lock_destroy(lock);
}

TEST(CMemoryLock, InvalidArgumentsLockNothing) {
    EXPECT_EQ(tensorpool_memory_lock_create(nullptr, 1), nullptr);
    EXPECT_EQ(tensorpool_memory_lock_grow_to(nullptr, 1, nullptr), tensorpool_invalid_argument);
    const std::byte memory[64] = {};
    tensorpool_memory_lock* const lock = tensorpool_memory_lock_create(memory, sizeof memory);
    tensorpool_lock_outcome outcome;
    outcome.struct_bytes = 7;
    EXPECT_EQ(tensorpool_memory_lock_grow_to(lock, 64, &outcome), tensorpool_invalid_argument);
    EXPECT_EQ(tensorpool_memory_lock_locked_bytes(lock), 0U);
    tensorpool_memory_lock_destroy(lock);
    tensorpool_memory_lock_destroy(nullptr);
}

}  // namespace
