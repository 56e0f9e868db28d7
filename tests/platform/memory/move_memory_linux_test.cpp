#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <string>

#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"
#include "support/refused_call_linux.hpp"

namespace tensorpool::platform {
namespace {

using testing::exit_code_of_child;

/// Address space for four pages, of which the first is committed.
struct Pages {
    Pages() : begin(static_cast<char*>(reserve(4 * page, page))) {
        EXPECT_TRUE(commit(begin, page));
    }
    ~Pages() { release(begin, 4 * page); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    const std::size_t page = page_bytes();
    char* begin;
};

TEST(MoveMemory, MovesContent) {
    if (!can_move_memory()) GTEST_SKIP() << "this kernel cannot move memory";
    const Pages pages;
    std::fill_n(pages.begin, pages.page, 'x');
    char* const to = pages.begin + 2 * pages.page;
    ASSERT_TRUE(move_memory(to, pages.begin, pages.page));
    EXPECT_EQ(std::count(to, to + pages.page, 'x'), static_cast<std::ptrdiff_t>(pages.page));
    to[1] = 'y';
    ASSERT_TRUE(move_memory(pages.begin, to, pages.page));
    EXPECT_EQ(pages.begin[1], 'y');
}

TEST(MoveMemory, LeavesWritableZeros) {
    if (!can_move_memory()) GTEST_SKIP() << "this kernel cannot move memory";
    const Pages pages;
    *pages.begin = 'x';
    ASSERT_TRUE(move_memory(pages.begin + pages.page, pages.begin, pages.page));
    EXPECT_EQ(*pages.begin, 0);
    *pages.begin = 'y';
    EXPECT_EQ(pages.begin[pages.page], 'x');
}

TEST(MoveMemory, FailureLeavesZerosAtTarget) {
    const Pages pages;
    *pages.begin = 'x';
    char* const gone = static_cast<char*>(map(pages.page, pages.page));
    unmap(gone, pages.page);
    EXPECT_FALSE(move_memory(pages.begin, gone, pages.page));
    EXPECT_EQ(*pages.begin, 0);
    *pages.begin = 'y';
}

TEST(CanMoveMemory, IsFalseIfTheSystemRefusesToMove) {
    EXPECT_TRUE(testing::holds_in_child(
        [] { return testing::refuse_call(SYS_mremap, ENOSYS) && !can_move_memory(); }));
}

TEST(MoveMemory, RefusedMoveToAReservationKeepsTheContent) {
    EXPECT_TRUE(testing::holds_in_child([] {
        const Pages pages;
        *pages.begin = 'x';
        char* const to = pages.begin + 2 * pages.page;
        if (!testing::refuse_call(SYS_mremap, EINVAL)) return false;
        return !move_memory(to, pages.begin, pages.page) && *pages.begin == 'x' && *to == 0;
    }));
}

/// What a child process that could not do what a test is about ends with.
constexpr int cannot = 77;

/// Twelve huge pages, all committed. The first four are a mapping each and have an 'x' in each
/// page; the target has neighbours that it shares a mapping with.
class SeveralMappings {
public:
    static constexpr std::size_t bytes = 4 * huge_page_bytes;

    SeveralMappings()
        : source(static_cast<char*>(reserve(3 * bytes, huge_page_bytes))),
          target(source + bytes + bytes / 2) {
        (void)commit(source, 3 * bytes);
        is_split = madvise(source, huge_page_bytes, MADV_HUGEPAGE) == 0 &&
                   madvise(source + 2 * huge_page_bytes, huge_page_bytes, MADV_HUGEPAGE) == 0;
        for (std::size_t at = 0; at < bytes; at += page_bytes()) source[at] = 'x';
    }
    bool has_all(const char* begin) const {
        for (std::size_t at = 0; at < bytes; at += page_bytes()) {
            if (begin[at] != 'x') return false;
        }
        return true;
    }
    /// The target may be used, and reads as zeros.
    bool is_target_clear() const {
        for (std::size_t at = 0; at < bytes; at += page_bytes()) {
            if (target[at] != 0) return false;
            target[at] = 'y';
        }
        return true;
    }

    char* const source;
    char* const target;
    bool is_split = false;
};

// Kernels from 6.17 on move the first mapping before they see that the second is not to move.
TEST(MoveMemory, ThatFailsAmidSeveralMappingsKeepsTheContent) {
    if (!can_move_memory()) GTEST_SKIP() << "this kernel moves none";
    constexpr long mseal_number = 462;  // of Linux 6.10, the same on all processors
    const int code = exit_code_of_child([] {
        const SeveralMappings memory;
        if (!memory.is_split) return cannot;
        if (syscall(mseal_number, memory.source + memory.bytes / 2, memory.bytes / 2, 0UL) != 0) {
            return cannot;
        }
        if (move_memory(memory.target, memory.source, memory.bytes)) return 1;
        if (!memory.has_all(memory.source)) return 2;
        return memory.is_target_clear() ? 0 : 3;
    });
    if (code == cannot) GTEST_SKIP() << "this kernel has no mseal, or no huge pages";
    EXPECT_EQ(code, 0);
}

std::size_t number_in(const char* path) {
    std::ifstream file(path);
    std::size_t number = 0;
    file >> number;
    return number;
}

std::size_t count_mappings() {
    std::ifstream file("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(file, line);) {
        count += line.find("[vsyscall]") == std::string::npos ? 1 : 0;  // it is the kernel's
    }
    return count;
}

/// Makes mappings until the process may have only `left` more. False where there is no doing so.
bool leave_mappings(std::size_t left) {
    const std::size_t limit = number_in("/proc/sys/vm/max_map_count");
    if (limit == 0 || limit > 100'000) return false;
    const std::size_t page = page_bytes();
    const std::size_t bytes = 2 * limit * page;
    auto* const room = static_cast<char*>(reserve(bytes, page));
    if (room == nullptr) return false;
    std::size_t count = count_mappings();
    // A readable page amid others makes two mappings more, and the last one makes one.
    for (char* at = room + page; count + 2 + left <= limit; at += 2 * page, count += 2) {
        if (mprotect(at, page, PROT_READ) != 0) return false;
    }
    return count + left == limit || mprotect(room + bytes - page, page, PROT_READ) == 0;
}

TEST(MoveMemory, NearTheLimitOfMappingsMovesOrKeepsTheContent) {
    if (!can_move_memory()) GTEST_SKIP() << "this kernel moves none";
    if constexpr (testing::sanitized()) GTEST_SKIP() << "the sanitizers need mappings of their own";
    // Linux 6.18 refuses at once with none left, and amid the mappings with 6 or 7.
    for (const std::size_t left : {0U, 3U, 6U, 7U, 9U}) {
        const int code = exit_code_of_child([left] {
            const SeveralMappings memory;
            if (!leave_mappings(left)) return cannot;
            const bool moved = move_memory(memory.target, memory.source, memory.bytes);
            if (!memory.has_all(moved ? memory.target : memory.source)) return 2;
            return moved || memory.is_target_clear() ? 0 : 3;
        });
        if (code == cannot) GTEST_SKIP() << "the limit of mappings cannot be reached here";
        EXPECT_EQ(code, 0) << left << " mappings left";
    }
}

}  // namespace
}  // namespace tensorpool::platform
