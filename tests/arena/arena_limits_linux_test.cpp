// Arenas in a process with limited memory: RLIMIT_AS, and a container's limit. The container
// consists of files that this program's `open` presents in place of the system's.

#include <tensorpool/arena.hpp>
#include <tensorpool/scratch.hpp>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "arena/arena_test.hpp"
#include "limits/commit_budget.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/file_tree.hpp"
#include "support/process_metrics.hpp"

namespace {

// The folder of the container's files; if empty, the system's files are read. A plain array,
// because `open` is called before a sanitizer is ready.
char container_root[256] = "";

bool is_of_container(const char* path) {
    return std::strncmp(path, "/sys/fs/cgroup", 14) == 0 ||
           std::strcmp(path, "/proc/self/cgroup") == 0 ||
           std::strcmp(path, "/proc/self/mountinfo") == 0;
}

}  // namespace

// Replaces the C library's function in this program.
extern "C" __attribute__((no_sanitize("thread", "address", "undefined"))) int open(const char* path,
                                                                                   int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
    va_end(more);
    char other[512];
    if (container_root[0] != '\0' && is_of_container(path)) {
        std::snprintf(other, sizeof other, "%s%s", container_root, path);
        path = other;
    }
    return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

namespace tensorpool {
namespace {

using testing::gib;
using testing::holds;
using testing::holds_in_child;
using testing::kib;
using testing::mib;
using testing::write_pattern;

/// Leaves this process `bytes` bytes of address space beyond its present use.
bool leave_address_space(std::size_t bytes) {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_cur = testing::memory_metrics().address_space + bytes;
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

/// Allocates blocks until one is refused. Returns their number; 0 if one of them lost its content.
std::size_t blocks_until_refused(Arena& arena, std::size_t bytes, std::size_t touched) {
    std::vector<void*> blocks;
    try {
        for (;;) {
            blocks.push_back(arena.allocate(bytes));
            write_pattern(blocks.back(), touched, blocks.size());
        }
    } catch (const std::bad_alloc&) {
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (!holds(blocks[i], touched, i + 1)) return 0;
    }
    return blocks.size();
}

/// Returns whether an arena of these options ends with bad_alloc, stays usable, and then repeats
/// that.
bool ends_and_stays_usable(const ArenaOptions& options, std::size_t bytes, std::size_t touched) {
    Arena arena(options);
    const std::size_t count = blocks_until_refused(arena, bytes, touched);
    if (count == 0 || arena.used() != count * bytes) return false;
    if (arena.try_allocate(bytes) != nullptr) return false;
    arena.reset();
    return blocks_until_refused(arena, bytes, touched) == count;
}

TEST(ArenaUnderRlimitAs, ReservesAtMostAQuarterOfTheRemainingAddressSpace) {
    // A quarter of the last two is not a whole number of pages.
    for (const std::size_t left :
         {100 * mib, 2000 * mib, 400 * mib + 4 * kib, 400 * mib + 8 * kib}) {
        for (const std::size_t max_capacity : {std::size_t{0}, 20 * gib}) {
            EXPECT_TRUE(holds_in_child([&] {
                const ArenaOptions options{.initial_capacity = 0, .max_capacity = max_capacity};
                { const Arena first = Arena::measuring(); }  // so that there is a segment
                if (!leave_address_space(left)) return false;
                const std::size_t before = platform::available_address_space();
                const Arena arena(options);
                const std::size_t taken = before - platform::available_address_space();
                return arena.reserved() <= before / 4 && arena.reserved() > before / 4 - mib &&
                       taken < before / 4 + mib;
            })) << left;
        }
    }
}

TEST(ArenaUnderRlimitAs, SmallMaximumIsReservedAsAWhole) {
    EXPECT_TRUE(holds_in_child([] {
        if (!leave_address_space(200 * mib)) return false;
        const Arena arena(ArenaOptions{.initial_capacity = 0, .max_capacity = 10 * mib});
        return arena.reserved() == 10 * mib;
    }));
}

TEST(ArenaUnderRlimitAs, ThrowsBadAllocAndStaysUsable) {
    EXPECT_TRUE(holds_in_child(
        [] { return leave_address_space(200 * mib) && ends_and_stays_usable({}, mib, mib); }));
}

TEST(ArenaUnderRlimitAs, ReportsTheLimitThatItMet) {
    EXPECT_TRUE(holds_in_child([] {
        if (!leave_address_space(200 * mib)) return false;
        Arena arena;
        const std::string refusal =
            testing::message_of<AllocationError>([&] { arena.allocate(100 * mib); });
        return refusal.find("a quarter of the address space that RLIMIT_AS left (") !=
               std::string::npos;
    }));
}

TEST(ArenaUnderRlimitAs, ManyArenasShareTheRemainingAddressSpace) {
    EXPECT_TRUE(holds_in_child([] {
        if (!leave_address_space(400 * mib)) return false;
        std::vector<std::unique_ptr<Arena>> arenas;
        try {
            for (;;) {
                arenas.push_back(std::make_unique<Arena>());
                write_pattern(arenas.back()->allocate(mib), mib, arenas.size());
            }
        } catch (const std::bad_alloc&) {
        }
        return arenas.size() >= 4 && arenas.front()->try_allocate(mib) != nullptr;
    }));
}

TEST(ArenaUnderRlimitAs, ConstructionFailsWithoutAddressSpace) {
    EXPECT_TRUE(holds_in_child([] {
        const std::size_t committed = limits::commit_budget().committed();
        if (!leave_address_space(mib)) return false;
        try {
            const Arena arena;
            return false;
        } catch (const AllocationError&) {
        }
        return limits::commit_budget().committed() == committed;
    }));
}

/// A container whose files are made by a test: this process is in /mine, of cgroup version 2.
class ArenaInAContainer : public ::testing::Test {
protected:
    // Gives back what other tests of this process left committed.
    ArenaInAContainer() {
        Scratch::local().reset();
        Scratch::local().trim();
    }
    ~ArenaInAContainer() override {
        container_root[0] = '\0';
        look_again();
    }

    void limit_to(std::size_t limit, std::size_t usage) {
        files_.write("/proc/self/cgroup", "0::/mine\n");
        files_.write("/proc/self/mountinfo",
                     "31 23 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
        const std::string group = "/sys/fs/cgroup/mine";
        files_.write(group + "/memory.max", std::to_string(limit) + "\n");
        files_.write(group + "/memory.current", std::to_string(usage) + "\n");
        files_.write(group + "/memory.stat", "anon 1\nfile 2\ninactive_file 0\n");
        std::snprintf(container_root, sizeof container_root, "%s", files_.root().c_str());
        look_again();
    }
    /// Requests an impossible amount, which is refused only after the limits were read again.
    static void look_again() {
        constexpr std::size_t too_much = SIZE_MAX / 2;
        EXPECT_EQ(limits::commit_budget().take(too_much, too_much, 1.0, 1), 0U);
    }

    /// The most that the process may have had in memory until now, which its arenas may commit
    /// beside what is available. The kernel's own counters are off by some pages.
    static std::size_t most_resident() { return platform::resident_memory() + 8 * mib; }

    testing::FileTree files_;
};

using ArenaInAContainerDeathTest = ArenaInAContainer;

// Runs in a process of its own, because the limit is read only once.
TEST_F(ArenaInAContainerDeathTest, ReservesTwiceTheLimit) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            limit_to(300 * mib, 200 * mib);
            const Arena arena(ArenaOptions{.initial_capacity = 0});
            std::filesystem::remove_all(files_.root());  // no destructor runs
            std::_Exit(arena.reserved() == 600 * mib ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "");
}

// The container's files are constant here, so the blocks are hardly touched.
TEST_F(ArenaInAContainer, ThrowsBadAllocAtTheLimitAndStaysUsable) {
    limit_to(300 * mib, 200 * mib);
    ASSERT_EQ(platform::available_memory(), 100 * mib);
    EXPECT_TRUE(holds_in_child([] {
        Arena arena(ArenaOptions{.initial_capacity = 0, .max_capacity = 10 * gib});
        const std::size_t count = blocks_until_refused(arena, mib, 100);
        if (count * mib < 100 * mib || count * mib > 100 * mib + most_resident()) return false;
        arena.reset();
        return blocks_until_refused(arena, mib, 100) >= count;
    }));
}

TEST_F(ArenaInAContainer, MemoryCommittedByOtherArenasCounts) {
    limit_to(300 * mib, 200 * mib);
    EXPECT_TRUE(holds_in_child([] {
        const ArenaOptions options{.initial_capacity = 60 * mib, .max_capacity = gib};
        Arena first(options);
        (void)first.try_allocate(60 * mib);
        Arena second({.initial_capacity = 0, .max_capacity = gib});
        const std::size_t count = blocks_until_refused(second, mib, 100);
        return count >= 40 && count * mib < 40 * mib + most_resident();
    }));
}

TEST_F(ArenaInAContainer, UnusedInitialCapacityOfOtherArenasDoesNotCount) {
    limit_to(300 * mib, 200 * mib);
    EXPECT_TRUE(holds_in_child([] {
        const Arena first({.initial_capacity = 60 * mib, .max_capacity = gib});
        Arena second({.initial_capacity = 0, .max_capacity = gib});
        return blocks_until_refused(second, mib, 100) >= 95;
    }));
}

TEST_F(ArenaInAContainer, SurplusEndsAtTheFractionOfTheLimit) {
    limit_to(300 * mib, 200 * mib);
    EXPECT_TRUE(holds_in_child([] {
        Arena arena({.initial_capacity = 0,
                     .max_capacity = gib,
                     .growth = {.step = 500 * mib, .factor = 0.0, .fraction = 0.5}});
        arena.allocate(mib);
        return arena.capacity() >= 50 * mib &&
               arena.capacity() <= (100 * mib + most_resident()) / 2;
    }));
}

}  // namespace
}  // namespace tensorpool
