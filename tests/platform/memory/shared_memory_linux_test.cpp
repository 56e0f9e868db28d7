#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>

#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

using testing::FileTree;
using testing::holds_in_child;

constexpr std::size_t mib = std::size_t{1} << 20;

// From the kernel's fcntl.h.
constexpr int seal_future_write = 0x0010;

/// Shared memory that the destructor unmaps and closes.
struct Shared : SharedMemory {
    Shared(const SharedMemory& memory, std::size_t size) : SharedMemory(memory), bytes(size) {}
    ~Shared() {
        if (address != nullptr) munmap(address, bytes);
        close_shared_memory(*this);
    }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    unsigned char* data() const { return static_cast<unsigned char*>(address); }
    struct stat status() const {
        struct stat status {};
        fstat(file, &status);
        return status;
    }
    std::size_t bytes;
};

bool is_zeros(const unsigned char* data, std::size_t bytes) {
    return std::all_of(data, data + bytes, [](unsigned char byte) { return byte == 0; });
}

bool set_limit(decltype(RLIMIT_FSIZE) resource, rlim_t max) {
    const rlimit limit{max, max};
    return setrlimit(resource, &limit) == 0;
}

/// Returns the path of this process's file in a folder.
std::string own_name() {
    std::string name = std::to_string(getpid());
    return name.insert(0, 1, '/');
}
std::string own_path(const FileTree& folder) {
    return folder.path(own_name());
}

bool exists(const std::string& path) {
    struct stat status {};
    return lstat(path.c_str(), &status) == 0;
}

bool is_open(int file) {
    return fcntl(file, F_GETFD) != -1;
}

// A file without a path -------------------------------------------------------------------------

TEST(ShareMemory, IsZeroedWritableAndNamed) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    ASSERT_NE(memory.address, nullptr);
    EXPECT_TRUE(is_zeros(memory.data(), mib));
    std::memcpy(memory.data() + 5000, "seen", 4);
    char seen[4];
    EXPECT_EQ(pread(memory.file, seen, 4, 5000), 4);
    EXPECT_EQ(std::memcmp(seen, "seen", 4), 0);
    const auto link = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(memory.file));
    EXPECT_EQ(link.string(), "/memfd:tensorpool (deleted)");
    EXPECT_EQ(memory.status().st_size, static_cast<off_t>(mib));
    EXPECT_EQ(memory.status().st_dev, memory.device);
    EXPECT_EQ(memory.status().st_ino, memory.inode);
}

TEST(ShareMemory, TakesPagesOnlyWhenTouched) {
    const Shared memory(share_memory("tensorpool", 16 * mib), 16 * mib);
    EXPECT_EQ(memory.status().st_blocks, 0);
    memory.data()[9 * mib] = 1;
    // At most one huge page, if the system uses huge pages for shared memory.
    EXPECT_LE(memory.status().st_blocks, static_cast<blkcnt_t>(2 * mib / 512));
}

TEST(ShareMemory, IsSealed) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    const int seals = fcntl(memory.file, F_GET_SEALS);
    ASSERT_EQ(seals & ~seal_future_write, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
    EXPECT_EQ(ftruncate(memory.file, 0), -1);
    EXPECT_EQ(ftruncate(memory.file, 2 * mib), -1);
    EXPECT_EQ(fcntl(memory.file, F_ADD_SEALS, F_SEAL_WRITE), -1) << "no seals can be added";
}

TEST(ShareMemory, OtherProcessesCannotWrite) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    if ((fcntl(memory.file, F_GET_SEALS) & seal_future_write) == 0) {
        GTEST_SKIP() << "this kernel (before 5.1) cannot seal against future writers";
    }
    EXPECT_EQ(mmap(nullptr, mib, PROT_READ | PROT_WRITE, MAP_SHARED, memory.file, 0), MAP_FAILED);
    EXPECT_EQ(pwrite(memory.file, "x", 1, 0), -1);
    void* const read_only = mmap(nullptr, mib, PROT_READ, MAP_SHARED, memory.file, 0);
    ASSERT_NE(read_only, MAP_FAILED);
    EXPECT_EQ(mprotect(read_only, mib, PROT_READ | PROT_WRITE), -1);
    memory.data()[7] = 77;
    EXPECT_EQ(static_cast<unsigned char*>(read_only)[7], 77)
        << "this process's mapping stays writable";
    munmap(read_only, mib);
}

TEST(ShareMemory, DescriptorIsHighAndClosedByExec) {
    const int lowest = dup(STDIN_FILENO);
    close(lowest);
    const Shared memory(share_memory("tensorpool", mib), mib);
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= 1024) {
        EXPECT_GE(memory.file, 960);
        EXPECT_LT(memory.file, 1024) << "the descriptor table stays small";
    }
    EXPECT_NE(fcntl(memory.file, F_GETFD) & FD_CLOEXEC, 0);
    const int lowest_now = dup(STDIN_FILENO);
    close(lowest_now);
    EXPECT_EQ(lowest_now, lowest) << "the low descriptor is closed";
}

TEST(ShareMemory, DescriptorIsBelowALowLimit) {
    EXPECT_TRUE(holds_in_child([] {
        if (!set_limit(RLIMIT_NOFILE, 40)) return false;
        const SharedMemory memory = share_memory("tensorpool", mib);
        return memory.address != nullptr && memory.file < 40 && is_open(memory.file);
    }));
}

TEST(ShareMemory, FileSizeLimitFailsWithoutSignal) {
    EXPECT_TRUE(holds_in_child([] {
        if (!set_limit(RLIMIT_FSIZE, mib - 1)) return false;
        const SharedMemory none = share_memory("tensorpool", mib);
        return none.address == nullptr && none.file == -1;
    }));
    EXPECT_TRUE(holds_in_child([] {
        return set_limit(RLIMIT_FSIZE, mib) && share_memory("tensorpool", mib).address != nullptr;
    }));
}

TEST(ShareMemory, FailsWithoutFreeDescriptor) {
    EXPECT_TRUE(holds_in_child([] {
        return set_limit(RLIMIT_NOFILE, 0) && share_memory("tensorpool", mib).address == nullptr;
    }));
}

TEST(ShareMemory, WorksWithLastDescriptor) {
    EXPECT_TRUE(holds_in_child([] {
        const int lowest = dup(STDIN_FILENO);
        close(lowest);
        if (!set_limit(RLIMIT_NOFILE, static_cast<rlim_t>(lowest) + 1)) return false;
        const SharedMemory memory = share_memory("tensorpool", mib);
        return memory.address != nullptr && memory.file == lowest;
    }));
}

// Sanitizers need address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(ShareMemory, LackOfAddressSpaceLeavesNoDescriptor) {
    EXPECT_TRUE(holds_in_child([] {
        const int lowest = dup(STDIN_FILENO);
        if (!set_limit(RLIMIT_AS, 0)) return false;
        const SharedMemory none = share_memory("tensorpool", mib);
        return none.address == nullptr && none.file == -1 && !is_open(lowest + 1);
    }));
}
#endif

TEST(ShareMemory, PreservesErrno) {
    errno = 42;
    const Shared memory(share_memory("tensorpool", mib), mib);
    EXPECT_EQ(share_memory_in("/no such folder", mib).address, nullptr);
    EXPECT_EQ(errno, 42);
}

// A file in a folder ----------------------------------------------------------------------------

TEST(ShareMemoryIn, CreatesFileNamedAfterProcessForItsUserOnly) {
    const FileTree folder;
    const mode_t before = umask(0);
    const Shared memory(share_memory_in(folder.root().c_str(), mib), mib);
    umask(before);
    ASSERT_NE(memory.address, nullptr);
    struct stat status {};
    ASSERT_EQ(lstat(own_path(folder).c_str(), &status), 0);
    EXPECT_TRUE(S_ISREG(status.st_mode));
    EXPECT_EQ(status.st_mode & 07777, 0600U);
    EXPECT_EQ(status.st_uid, geteuid());
    EXPECT_EQ(status.st_ino, memory.inode);
    EXPECT_EQ(status.st_size, static_cast<off_t>(mib));
    EXPECT_LT(status.st_blocks, static_cast<blkcnt_t>(mib / 512)) << "only used pages take space";
    EXPECT_TRUE(get_shared_pages(memory.address, 8192));
    EXPECT_NE(fcntl(memory.file, F_GETFD) & FD_CLOEXEC, 0);
    EXPECT_TRUE(is_zeros(memory.data(), mib));
    memory.data()[3] = 33;
    EXPECT_EQ(folder.read(own_name())[3], 33);
}

TEST(ShareMemoryIn, ReplacesFileOfEndedProcess) {
    const FileTree folder;
    folder.write(own_name(), std::string(mib, 'x'));
    const Shared memory(share_memory_in(folder.root().c_str(), mib), mib);
    ASSERT_NE(memory.address, nullptr);
    EXPECT_TRUE(is_zeros(memory.data(), mib));
    struct stat status {};
    ASSERT_EQ(lstat(own_path(folder).c_str(), &status), 0);
    EXPECT_EQ(status.st_ino, memory.inode);
}

TEST(ShareMemoryIn, KeepsFileOfAnotherSize) {
    const FileTree folder;
    folder.write(own_name(), "precious");
    EXPECT_EQ(share_memory_in(folder.root().c_str(), mib).address, nullptr);
    EXPECT_EQ(folder.read(own_name()), "precious");
}

TEST(ShareMemoryIn, KeepsFileOfRunningProcess) {
    const FileTree folder;
    const Shared memory(share_memory_in(folder.root().c_str(), mib), mib);
    ASSERT_NE(memory.address, nullptr);
    EXPECT_EQ(share_memory_in(folder.root().c_str(), mib).address, nullptr)
        << "such as a process with this number in another container";
    struct stat status {};
    ASSERT_EQ(lstat(own_path(folder).c_str(), &status), 0);
    EXPECT_EQ(status.st_ino, memory.inode);
}

TEST(ShareMemoryIn, FollowsNoLink) {
    const FileTree folder;
    folder.write("/precious", "kept");
    ASSERT_EQ(symlink("precious", own_path(folder).c_str()), 0);
    EXPECT_EQ(share_memory_in(folder.root().c_str(), mib).address, nullptr);
    EXPECT_EQ(folder.read("/precious"), "kept");
    EXPECT_TRUE(std::filesystem::is_symlink(own_path(folder)));
}

TEST(ShareMemoryIn, FollowsNoDanglingLink) {
    const FileTree folder;
    ASSERT_EQ(symlink("missing", own_path(folder).c_str()), 0);
    EXPECT_EQ(share_memory_in(folder.root().c_str(), mib).address, nullptr);
    EXPECT_FALSE(exists(folder.path("/missing")));
}

TEST(ShareMemoryIn, KeepsPipesAndFolders) {
    const FileTree folder;
    ASSERT_EQ(mkfifo(own_path(folder).c_str(), 0600), 0);
    EXPECT_EQ(share_memory_in(folder.root().c_str(), mib).address, nullptr);
    EXPECT_TRUE(std::filesystem::is_fifo(own_path(folder)));
    std::filesystem::remove(own_path(folder));
    ASSERT_EQ(mkdir(own_path(folder).c_str(), 0700), 0);
    EXPECT_EQ(share_memory_in(folder.root().c_str(), mib).address, nullptr);
    EXPECT_TRUE(std::filesystem::is_directory(own_path(folder)));
}

TEST(ShareMemoryIn, FailsWithoutFolder) {
    const FileTree folder;
    folder.write("/file", "");
    EXPECT_EQ(share_memory_in(folder.path("/missing").c_str(), mib).address, nullptr);
    EXPECT_EQ(share_memory_in(folder.path("/file").c_str(), mib).address, nullptr);
    EXPECT_EQ(share_memory_in(std::string(600, 'f').c_str(), mib).address, nullptr);
}

TEST(ShareMemoryIn, FileSizeLimitLeavesNoFile) {
    const FileTree folder;
    EXPECT_TRUE(holds_in_child([&] {
        return set_limit(RLIMIT_FSIZE, mib - 1) &&
               share_memory_in(folder.root().c_str(), mib).address == nullptr &&
               !exists(own_path(folder));
    }));
}

// Simulates a full disk: no file system can hold this size.
TEST(ShareMemoryIn, FullDiskLeavesNoFile) {
    const FileTree folder;
    constexpr std::size_t too_much = std::size_t{1} << 62;
    EXPECT_EQ(share_memory_in(folder.root().c_str(), too_much).address, nullptr);
    EXPECT_FALSE(exists(own_path(folder)));
}

TEST(ShareMemoryIn, IsRemovedOnlyIfItIsTheSameFile) {
    const FileTree folder;
    const char* const root = folder.root().c_str();
    const Shared memory(share_memory_in(root, mib), mib);
    remove_shared_file(root, memory);
    EXPECT_FALSE(exists(own_path(folder)));
    memory.data()[0] = 1;  // is still memory
    remove_shared_file(root, memory);

    folder.write(own_name(), "another's");
    remove_shared_file(root, memory);
    EXPECT_TRUE(exists(own_path(folder)));
}

// Closing and replacing -------------------------------------------------------------------------

TEST(CloseSharedMemory, ClosesDescriptorAndKeepsMemory) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    memory.data()[0] = 1;
    close_shared_memory(memory);
    EXPECT_FALSE(is_open(memory.file));
    EXPECT_EQ(memory.data()[0], 1);
    close_shared_memory(memory);
    close_shared_memory(SharedMemory{});
}

TEST(CloseSharedMemory, KeepsOtherFileWithSameDescriptor) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    const Shared other(share_memory("tensorpool", mib), mib);
    const int files[] = {open("/dev/null", O_RDONLY), dup(other.file)};
    for (const int file : files) {
        ASSERT_EQ(dup2(file, memory.file), memory.file);
        close_shared_memory(memory);
        EXPECT_TRUE(is_open(memory.file));
        close(file);
    }
    close(memory.file);
}

TEST(ReplaceMapping, MovesMappingOverAnother) {
    const Shared old(share_memory("old", mib), mib);
    const SharedMemory by = share_memory("new", mib);
    old.data()[0] = 1;
    static_cast<unsigned char*>(by.address)[0] = 2;
    ASSERT_TRUE(replace_mapping(old.address, by.address, mib));
    EXPECT_EQ(old.data()[0], 2);
    old.data()[1] = 3;
    unsigned char seen[2] = {};
    EXPECT_EQ(pread(by.file, seen, 2, 0), 2);
    EXPECT_EQ(seen[1], 3) << "writes now go to the other file";
    EXPECT_EQ(pread(old.file, seen, 2, 0), 2);
    EXPECT_EQ(seen[0], 1) << "and no longer to the first file";
    close_shared_memory(by);
}

TEST(ReplaceMapping, AcceptsPrivateMemory) {
    const Shared old(share_memory("old", mib), mib);
    void* const by = map(mib, page_bytes());
    std::memset(by, 9, mib);
    ASSERT_TRUE(replace_mapping(old.address, by, mib));
    EXPECT_EQ(old.data()[mib - 1], 9);
}

TEST(ReplaceMapping, RejectsAddressThatIsNoMapping) {
    const Shared old(share_memory("old", mib), mib);
    old.data()[0] = 1;
    EXPECT_FALSE(replace_mapping(old.address, old.data() + 1, mib));
    EXPECT_EQ(old.data()[0], 1);
}

TEST(MakePrivate, KeepsContentAndSeparatesItFromFile) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    memory.data()[0] = 1;
    EXPECT_TRUE(holds_in_child([&] {
        if (!make_private(memory.address, memory, mib) || memory.data()[0] != 1) return false;
        memory.data()[0] = 2;
        unsigned char seen = 0;
        return pread(memory.file, &seen, 1, 0) == 1 && seen == 1;
    }));
    EXPECT_EQ(memory.data()[0], 1);
}

TEST(MakePrivate, FailsIfDescriptorRefersToOtherFile) {
    const Shared memory(share_memory("tensorpool", mib), mib);
    memory.data()[0] = 1;
    const Shared other(share_memory("tensorpool", mib), mib);
    ASSERT_EQ(dup2(other.file, memory.file), memory.file);
    EXPECT_FALSE(make_private(memory.address, memory, mib));
    EXPECT_EQ(memory.data()[0], 1);
    close(memory.file);
}

// Process identity ------------------------------------------------------------------------------

TEST(IdentifyProcess, ReportsNumberNameSpaceAndStart) {
    const ProcessIdentity identity = identify_process();
    EXPECT_EQ(identity.number, static_cast<std::uint64_t>(getpid()));
    struct stat status {};
    ASSERT_EQ(stat("/proc/self/ns/pid", &status), 0);
    EXPECT_EQ(identity.name_space, status.st_ino);
    EXPECT_GT(identity.start_ticks, 0U);
    EXPECT_EQ(identity.start_ticks, identify_process().start_ticks);
}

TEST(IdentifyProcess, ParsesStartAfterAnyName) {
    const std::uint64_t start = identify_process().start_ticks;
    char before[16];
    prctl(PR_GET_NAME, before);
    for (const char* const name :
         {"plain", "two words", ") R 1 2 (", "(((", ")))", "", " ", "two\nlines", "back\\slash",
          "fifteen letters", "\xC3\xA4hnlich"}) {
        prctl(PR_SET_NAME, name);
        const ProcessIdentity identity = identify_process();
        EXPECT_STREQ(identity.name, name);
        EXPECT_EQ(identity.start_ticks, start) << name;
    }
    prctl(PR_SET_NAME, before);
}

TEST(IdentifyProcess, ChildOfForkHasOwnIdentity) {
    const ProcessIdentity parent = identify_process();
    EXPECT_TRUE(holds_in_child([&] {
        const ProcessIdentity child = identify_process();
        return child.number != parent.number && child.start_ticks >= parent.start_ticks;
    }));
}

}  // namespace
}  // namespace tensorpool::platform
