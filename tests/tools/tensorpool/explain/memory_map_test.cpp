#include "explain/explanation.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <sstream>

#include "common/settings.hpp"

namespace tensorpool::command::explain {
namespace {

constexpr const char* smaps =
    "55d0c0000000-55d0c0021000 rw-p 00000000 00:00 0                          [heap]\n"
    "Size:                132 kB\n"
    "Rss:                  40 kB\n"
    "VmFlags: rd wr mr mw me ac\n"
    "700000000000-700000001000 r-xp 00002000 08:01 4711       /usr/lib/a library.so (deleted)\n"
    "Rss:                   4 kB\n"
    "700000001000-700000002000 ---p 00000000 00:00 0 \n"
    "Rss:                   0 kB\n"
    "700000002000-700000802000 rw-p 00000000 00:00 0 \n"
    "Rss:                  16 kB\n";

std::vector<Mapping> mappings() {
    std::istringstream in(smaps);
    return read_memory_map(in);
}

Mapping anonymous(std::uint64_t begin, std::uint64_t end, const char* access = "rw-p") {
    return {.begin = begin, .end = end, .access = access};
}

MappingKind kind_of(const Mapping& mapping, Range pools = {}, Range page_map = {}) {
    return explain::kind_of({mapping}, 0, pools, page_map);
}

TEST(MemoryMap, IsReadWithNamesAndResidentBytes) {
    const std::vector<Mapping> read = mappings();
    ASSERT_EQ(read.size(), 4u);
    EXPECT_EQ(read[0].begin, 0x55d0c0000000u);
    EXPECT_EQ(read[0].bytes(), 0x21000u);
    EXPECT_EQ(read[0].path, "[heap]");
    EXPECT_EQ(read[0].resident_bytes, 40u << 10);
    EXPECT_EQ(read[1].path, "/usr/lib/a library.so (deleted)");
    EXPECT_EQ(read[2].access, "---p");
    EXPECT_EQ(read[3].path, "");
    EXPECT_EQ(read[3].resident_bytes, 16u << 10);
}

TEST(MemoryMap, OfThisProcessHasItsStackAndOfNoneIsAnError) {
    bool has_stack = false;
    for (const Mapping& mapping : read_memory_map(static_cast<std::uint64_t>(getpid()))) {
        has_stack = has_stack || mapping.path == "[stack]";
    }
    EXPECT_TRUE(has_stack);
    try {
        (void)read_memory_map(0);
        ADD_FAILURE() << "there is no such process";
    } catch (const CommandError& error) {
        EXPECT_STREQ(error.what(),
                     "/proc/0/smaps cannot be read: expected a process of this user that runs");
    }
}

TEST(MappingKind, FollowsFromTheName) {
    EXPECT_EQ(kind_of({.path = "[heap]"}), MappingKind::heap);
    EXPECT_EQ(kind_of({.path = "[stack]"}), MappingKind::stack);
    EXPECT_EQ(kind_of({.path = "/usr/bin/python3.11"}), MappingKind::file);
    EXPECT_EQ(kind_of({.path = "/dev/nvidia0"}), MappingKind::device);
    EXPECT_EQ(kind_of({.path = "/dev/shm/queue"}), MappingKind::shared);
    EXPECT_EQ(kind_of({.path = "/memfd:queue (deleted)"}), MappingKind::shared);
    EXPECT_EQ(kind_of({.path = "/memfd:tensorpool (deleted)"}), MappingKind::segment);
    EXPECT_EQ(kind_of({.path = "[anon_shmem:queue]"}), MappingKind::shared);
    EXPECT_EQ(kind_of({.path = "[anon:queue]"}), MappingKind::anonymous);
    EXPECT_EQ(kind_of({.path = "/anon_hugepage (deleted)"}), MappingKind::anonymous);
    EXPECT_EQ(kind_of({.path = "[vdso]"}), MappingKind::file);
    EXPECT_EQ(kind_of(anonymous(4096, 8192, "rw-s")), MappingKind::shared);
    EXPECT_EQ(kind_of(anonymous(4096, 8192)), MappingKind::anonymous);
}

TEST(MappingKind, FollowsFromThePublishedAddresses) {
    const Range pools{0x100000, 0x10000};
    const Range page_map{0x200000, 0x1000};
    EXPECT_EQ(kind_of(anonymous(0x100000, 0x101000), pools, page_map), MappingKind::pools);
    EXPECT_EQ(kind_of(anonymous(0x10f000, 0x110000), pools, page_map), MappingKind::pools);
    EXPECT_EQ(kind_of(anonymous(0x110000, 0x111000), pools, page_map), MappingKind::anonymous);
    EXPECT_EQ(kind_of(anonymous(0xff000, 0x100000), pools, page_map), MappingKind::anonymous);
    EXPECT_EQ(kind_of(anonymous(0x200000, 0x201000), pools, page_map), MappingKind::page_map);
    const Mapping file{.begin = 0x101000, .end = 0x102000, .path = "/lib/a.so"};
    EXPECT_EQ(kind_of(file, pools, page_map), MappingKind::file);
}

TEST(MappingKind, StackLiesBehindAGuardAndAHeapOfAThreadAtItsMultiple) {
    EXPECT_EQ(explain::kind_of(mappings(), 3, {}, {}), MappingKind::stack);
    const std::uint64_t begin = std::uint64_t{64} << 20;
    const std::vector<Mapping> heap = {anonymous(begin, begin + 0x21000),
                                       anonymous(begin + 0x21000, 2 * begin, "---p")};
    EXPECT_EQ(explain::kind_of(heap, 0, {}, {}), MappingKind::heap);
    EXPECT_EQ(explain::kind_of({heap[0]}, 0, {}, {}), MappingKind::anonymous);
}

}  // namespace
}  // namespace tensorpool::command::explain
