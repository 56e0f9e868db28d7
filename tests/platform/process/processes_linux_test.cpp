#include "platform/process/processes.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

const auto self = static_cast<std::uint64_t>(::getpid());

/// A child process that calls the given function and then waits until it is killed.
class Child {
public:
    template <class Function>
    explicit Child(Function function) {
        int ready[2];
        if (::pipe(ready) != 0) std::abort();
        process_ = ::fork();
        if (process_ == 0) {
            function();
            if (::write(ready[1], ".", 1) != 1) ::_exit(1);
            for (;;) ::pause();
        }
        ::close(ready[1]);
        char answer;
        EXPECT_EQ(::read(ready[0], &answer, 1), 1);
        ::close(ready[0]);
    }
    ~Child() {
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    std::uint64_t number() const { return static_cast<std::uint64_t>(process_); }

private:
    pid_t process_;
};

TEST(Processes, ListsRunningProcesses) {
    const Child child([] {});
    const auto numbers = process_numbers();
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
    EXPECT_TRUE(std::binary_search(numbers.begin(), numbers.end(), child.number()));
    EXPECT_TRUE(std::binary_search(numbers.begin(), numbers.end(), self));
}

TEST(ProcessFacts, ReportNameStartAndMemory) {
    // A name may contain the characters that separate other fields.
    const Child child([] { ::prctl(PR_SET_NAME, "a) Z 1 (b\n"); });
    const auto facts = facts_of(child.number());
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->name, "a) Z 1 (b\n");
    EXPECT_TRUE(facts->has_memory);
    EXPECT_GT(facts->resident_bytes, 0U);
    EXPECT_EQ(facts->resident_bytes % page_bytes(), 0U);
    EXPECT_GT(facts->minor_faults, 0U);
    EXPECT_GE(facts->start_ticks, facts_of(self)->start_ticks);
}

TEST(ProcessFacts, MatchOwnIdentity) {
    const ProcessIdentity identity = identify_process();
    EXPECT_EQ(facts_of(self)->start_ticks, identity.start_ticks);
    EXPECT_EQ(facts_of(self)->name, identity.name);
    EXPECT_EQ(own_name_of(self).number, identity.number);
    EXPECT_EQ(own_name_of(self).name_space, identity.name_space);
}

TEST(ProcessFacts, CountFaults) {
    const auto before = facts_of(self)->minor_faults;
    constexpr std::size_t bytes = 64 * 4096;
    auto* const memory = static_cast<char*>(map(bytes, page_bytes()));
    for (std::size_t at = 0; at < bytes; at += page_bytes()) memory[at] = 1;
    EXPECT_GT(facts_of(self)->minor_faults, before);
    unmap(memory, bytes);
}

TEST(ProcessFacts, EndedProcessHasNone) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    siginfo_t info;
    ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
    EXPECT_FALSE(facts_of(static_cast<std::uint64_t>(child)))
        << "its parent has not waited for it yet";
    ::waitpid(child, nullptr, 0);
    EXPECT_FALSE(facts_of(static_cast<std::uint64_t>(child)));
    EXPECT_FALSE(facts_of(0));
    EXPECT_FALSE(facts_of(~std::uint64_t{0}));
}

TEST(ThreadName, ReturnsNameSetByThread) {
    const Child child([] { ::prctl(PR_SET_NAME, "my thread"); });
    EXPECT_EQ(thread_name(child.number(), child.number()), "my thread");
    EXPECT_EQ(thread_name(child.number(), 1U << 30), "");
}

TEST(MemoryFiles, FindsOpenFilesByName) {
    const Child child([] {
        memfd_create("processes test", 0);
        memfd_create("processes test 2", 0);
        const int file = memfd_create("processes test", MFD_ALLOW_SEALING);
        if (::ftruncate(file, 4096) != 0) ::_exit(1);
        ::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK);
    });
    MemoryFiles found = memory_files_of(child.number(), "processes test");
    EXPECT_EQ(found.look, Look::allowed);
    ASSERT_EQ(found.files.size(), 2U);
    EXPECT_FALSE(found.files[0].file.is_sealed());
    EXPECT_TRUE(found.files[1].file.is_sealed());
    EXPECT_EQ(found.files[1].file.bytes(), 4096U);
    EXPECT_TRUE(holds_file(child.number(), found.files[0].descriptor, found.files[0].file));
    EXPECT_FALSE(holds_file(child.number(), found.files[1].descriptor, found.files[0].file));
    EXPECT_FALSE(holds_file(child.number(), 1000, found.files[0].file));
}

TEST(MemoryFiles, FindsMappingsOfClosedFiles) {
    const Child child([] {
        const int file = memfd_create("mapped only", 0);
        if (::ftruncate(file, 4096) != 0) ::_exit(1);
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        const int read = memfd_create("only read", 0);
        if (::ftruncate(read, 4096) != 0) ::_exit(1);
        ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, read, 0);
        ::close(read);
        ::close(file);
    });
    EXPECT_TRUE(memory_files_of(child.number(), "mapped only").files.empty());
    EXPECT_TRUE(maps_memory_file(child.number(), "mapped only", 0));
    EXPECT_FALSE(maps_memory_file(child.number(), "mapped", 0));
    EXPECT_FALSE(maps_memory_file(child.number(), "only read", 0)) << "readers map files this way";
    EXPECT_FALSE(maps_memory_file(child.number(), "mapped only", 12345678901)) << "another inode";
}

TEST(MemoryFiles, ReportsMissingProcess) {
    EXPECT_EQ(memory_files_of(0, "x").look, Look::no_process);
    EXPECT_EQ(memory_files_of(~std::uint64_t{0}, "x").look, Look::no_process);
    EXPECT_FALSE(maps_memory_file(0, "x", 0));
}

}  // namespace
}  // namespace tensorpool::platform
