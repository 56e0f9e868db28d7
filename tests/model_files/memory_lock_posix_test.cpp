// Locks that the kernel grants and refuses. With sanitizers, mlock does nothing.

#include <tensorpool/memory_lock.hpp>

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include <tensorpool/mapped_file.hpp>

#include "model_files/test_file.hpp"
#include "platform/files/file_pages.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using files::File;
using files::numbered_text;

const std::size_t page = platform::page_bytes();

/// Untouched pages of this process.
class Memory {
public:
    explicit Memory(std::size_t pages)
        : bytes_(pages * page), address_(platform::map(bytes_, page)) {}
    ~Memory() { platform::unmap(address_, bytes_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::span<const std::byte> bytes() const {
        return {static_cast<const std::byte*>(address_), bytes_};
    }

private:
    std::size_t bytes_;
    void* address_;
};

/// Limits the locked memory of this process, and drops root's rights. Returns false on failure.
bool may_lock(std::size_t soft, std::size_t hard) {
    const rlimit limit{soft, hard};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
    constexpr uid_t unprivileged = 65534;
    return geteuid() != 0 || setresuid(unprivileged, unprivileged, unprivileged) == 0;
}

class MemoryLockPosix : public ::testing::Test {
protected:
    void SetUp() override {
        if (testing::sanitized()) GTEST_SKIP() << "mlock does nothing here";
    }
    const std::size_t before_ = platform::locked_memory();
    std::size_t locked() const { return platform::locked_memory() - before_; }
};

TEST_F(MemoryLockPosix, ConstructorLocksNothing) {
    const Memory memory(10);
    const MemoryLock lock(memory.bytes());
    EXPECT_EQ(locked(), 0U);
    EXPECT_EQ(lock.locked_bytes(), 0U);
    EXPECT_EQ(lock.range().data(), memory.bytes().data());
}

TEST_F(MemoryLockPosix, GrowsInPiecesAndUnlocksWhenDestroyed) {
    const Memory memory(10);
    {
        MemoryLock lock(memory.bytes());
        const LockOutcome first = lock.grow_to(page);
        EXPECT_TRUE(first);
        EXPECT_EQ(first.asked_bytes, page);
        EXPECT_EQ(first.locked_bytes, page);
        EXPECT_EQ(locked(), page);
        EXPECT_TRUE(lock.grow_to(4 * page + 1));
        EXPECT_EQ(locked(), 5 * page);
        EXPECT_TRUE(lock.grow_to(5 * page));
        EXPECT_EQ(locked(), 5 * page);
        EXPECT_TRUE(lock.grow_to(2 * page));
        EXPECT_EQ(lock.locked_bytes(), 5 * page);
        EXPECT_TRUE(lock.grow_to(SIZE_MAX));
        EXPECT_EQ(lock.locked_bytes(), 10 * page);
        EXPECT_EQ(locked(), 10 * page);
    }
    EXPECT_EQ(locked(), 0U);
}

TEST_F(MemoryLockPosix, LocksWholePagesOfAnUnalignedRange) {
    const Memory memory(4);
    MemoryLock lock(memory.bytes().subspan(page + 7, page));
    EXPECT_TRUE(lock.grow_to(1));
    EXPECT_EQ(locked(), page);
    EXPECT_TRUE(lock.grow_to(page - 7));
    EXPECT_EQ(locked(), page);
    EXPECT_TRUE(lock.grow_to(page));
    EXPECT_EQ(locked(), 2 * page);
}

TEST_F(MemoryLockPosix, EmptyRangeLocksNothing) {
    MemoryLock none;
    EXPECT_TRUE(none.grow_to(100));
    MemoryLock empty(std::span<const std::byte>{});
    EXPECT_TRUE(empty.grow_to(0));
    EXPECT_EQ(locked(), 0U);
}

TEST_F(MemoryLockPosix, MoveTransfersTheLock) {
    const Memory memory(4);
    MemoryLock first(memory.bytes());
    EXPECT_TRUE(first.grow_to(page));
    MemoryLock second = std::move(first);
    EXPECT_TRUE(second.grow_to(2 * page));
    { const MemoryLock gone = std::move(first); }
    EXPECT_EQ(locked(), 2 * page);
    second = MemoryLock();
    EXPECT_EQ(locked(), 0U);
}

TEST_F(MemoryLockPosix, MakesFilePagesResident) {
    const File file(numbered_text(16 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    mapped.drop_pages();
    MemoryLock lock(mapped.bytes());
    EXPECT_TRUE(lock.grow_to(16 * page));
    EXPECT_EQ(mapped.resident_bytes(), 16 * page);
    EXPECT_EQ(mapped.drop_pages(), Advised::refused);  // it is locked
}

TEST_F(MemoryLockPosix, UnlocksPagesThatAreStillMapped) {
    const File file(numbered_text(16 * page));
    MappedFile mapped = MappedFile::open(file.path());
    {
        MemoryLock lock(mapped.bytes());
        EXPECT_TRUE(lock.grow_to(16 * page));
        mapped.unmap({0, 4 * page});
        EXPECT_EQ(locked(), 12 * page);
    }
    EXPECT_EQ(locked(), 0U);
}

// Limits, reached in a child process
// ---------------------------------------------------------------

TEST_F(MemoryLockPosix, ReportsTheSoftLimit) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        const Memory memory(64);
        if (!may_lock(32 * page, 1000 * page)) return false;
        MemoryLock lock(memory.bytes());
        if (!lock.grow_to(20 * page)) return false;
        const LockOutcome outcome = lock.grow_to(33 * page);
        return outcome.limit == LockLimit::soft && outcome.limit_bytes == 32 * page &&
               outcome.hard_limit_bytes == 1000 * page && outcome.asked_bytes == 33 * page &&
               outcome.locked_bytes == 20 * page && outcome.needed_bytes == 33 * page &&
               platform::locked_memory() == 20 * page && lock.locked_bytes() == 20 * page;
    }));
}

TEST_F(MemoryLockPosix, ReportsTheHardLimitIfTheSoftOneIsNotEnough) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        const Memory memory(64);
        if (!may_lock(16 * page, 32 * page)) return false;
        MemoryLock lock(memory.bytes());
        const LockOutcome outcome = lock.grow_to(33 * page);
        return outcome.limit == LockLimit::hard && outcome.limit_bytes == 16 * page &&
               outcome.hard_limit_bytes == 32 * page && outcome.locked_bytes == 0 &&
               platform::locked_memory() == 0;
    }));
}

TEST_F(MemoryLockPosix, ReportsALimitOfZero) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        const Memory memory(1);
        if (!may_lock(0, 0)) return false;
        MemoryLock lock(memory.bytes());
        const LockOutcome outcome = lock.grow_to(1);
        return outcome.limit == LockLimit::hard && outcome.limit_bytes == 0 &&
               outcome.needed_bytes == page;
    }));
}

TEST_F(MemoryLockPosix, StopsTryingAfterARefusal) {
    EXPECT_TRUE(testing::holds_in_child([&] {
        const Memory memory(64);
        if (!may_lock(8 * page, 64 * page)) return false;
        MemoryLock lock(memory.bytes());
        if (!lock.grow_to(4 * page)) return false;
        if (lock.grow_to(9 * page)) return false;
        const LockOutcome again = lock.grow_to(5 * page);  // there would be room for this
        const LockOutcome held = lock.grow_to(4 * page);
        return again.limit == LockLimit::soft && again.asked_bytes == 5 * page &&
               again.locked_bytes == 4 * page && held && platform::locked_memory() == 4 * page;
    }));
}

// Other reasons -----------------------------------------------------------------------------------

TEST_F(MemoryLockPosix, RefusesALockAboveAvailableMemory) {
    const File file("");
    constexpr std::size_t large = std::size_t{1} << 44;
    std::filesystem::resize_file(file.path(), large - page);
    const MappedFile mapped = MappedFile::open(file.path());
    MemoryLock lock(mapped.bytes());
    const LockOutcome outcome = lock.grow_to(large);
    EXPECT_TRUE(outcome.limit == LockLimit::machine || outcome.limit == LockLimit::container);
    EXPECT_EQ(outcome.asked_bytes, large - page);
    EXPECT_EQ(outcome.locked_bytes, 0U);
    EXPECT_GT(outcome.limit_bytes, 0U);
    EXPECT_LE(outcome.available_bytes, outcome.limit_bytes);
    EXPECT_EQ(locked(), 0U);
}

TEST_F(MemoryLockPosix, ReportsAShortenedFile) {
    const File file(numbered_text(8 * page));
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), 2 * page);
    MemoryLock lock(mapped.bytes());
    EXPECT_TRUE(lock.grow_to(2 * page));
    EXPECT_EQ(lock.grow_to(3 * page).limit, LockLimit::pages);
    EXPECT_EQ(locked(), 2 * page);
}

TEST_F(MemoryLockPosix, KeepsPiecesBeforeARefusedOne) {
    constexpr std::size_t mib = std::size_t{1} << 20;
    const File file("");
    std::filesystem::resize_file(file.path(), 160 * mib);
    const MappedFile mapped = MappedFile::open(file.path());
    std::filesystem::resize_file(file.path(), 150 * mib);
    MemoryLock lock(mapped.bytes());
    const LockOutcome outcome = lock.grow_to(160 * mib);
    if (outcome.limit != LockLimit::pages) GTEST_SKIP() << to_text(outcome);
    EXPECT_EQ(outcome.locked_bytes, 128 * mib);
    EXPECT_EQ(locked(), 128 * mib);
}

TEST_F(MemoryLockPosix, ReportsAnUnmappedRange) {
    const Memory memory(8);
    MemoryLock lock(memory.bytes());
    munmap(const_cast<std::byte*>(memory.bytes().data()) + 4 * page, page);
    EXPECT_EQ(lock.grow_to(8 * page).limit, LockLimit::pages);
    EXPECT_EQ(locked(), 0U);
}

}  // namespace
}  // namespace tensorpool
