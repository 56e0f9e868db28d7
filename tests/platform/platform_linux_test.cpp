#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "platform/memory/numa_policy.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool::platform {
namespace {

using testing::holds_in_child;

constexpr std::size_t mib = std::size_t{1} << 20;
/// MADV_POPULATE_WRITE, which older headers lack.
constexpr unsigned advice_populate_write = 23;

/// Committed memory that the destructor unmaps.
class Mapping {
public:
    explicit Mapping(std::size_t wanted, std::size_t alignment = page_bytes())
        : bytes(wanted), begin(static_cast<unsigned char*>(map(wanted, alignment))) {}
    ~Mapping() { unmap(begin, bytes); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    std::size_t pages_in_memory() const {
        std::vector<unsigned char> in_memory(bytes / page_bytes());
        if (mincore(begin, bytes, in_memory.data()) != 0) return 0;
        return static_cast<std::size_t>(
            std::ranges::count_if(in_memory, [](unsigned char page) { return page & 1; }));
    }

    const std::size_t bytes;
    unsigned char* const begin;
};

/// Returns a field of /proc/self/statm (proc(5)) in bytes. A buffer on the heap could be what the
/// heap grows for.
std::size_t process_size(int position) {
    char buffer[256];
    std::ifstream file;
    file.rdbuf()->pubsetbuf(buffer, sizeof buffer);
    file.open("/proc/self/statm");
    std::size_t pages = 0;
    for (int field = 0; field <= position; ++field) file >> pages;
    return pages * page_bytes();
}
std::size_t address_space_bytes() {
    return process_size(0);
}
std::size_t data_bytes() {
    return process_size(5);
}

/// Returns whether /proc/self/maps has a mapping of exactly this range.
bool is_mapping(const unsigned char* begin, std::size_t bytes) {
    std::ostringstream range;
    range << std::hex << reinterpret_cast<std::uintptr_t>(begin) << '-'
          << reinterpret_cast<std::uintptr_t>(begin + bytes) << ' ';
    std::ifstream file("/proc/self/maps");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(range.str())) return true;
    }
    return false;
}

// Reserving, decommitting, prefaulting -----------------------------------------------------------

TEST(LinuxOffer, OfferedPagesKeepWhatIsWrittenAfterwards) {
    const std::size_t bytes = 8 * page_bytes();
    auto* const memory = static_cast<unsigned char*>(map(bytes, page_bytes()));
    ASSERT_NE(memory, nullptr);
    std::memset(memory, 1, bytes);
    EXPECT_TRUE(offer(memory, bytes));
    for (std::size_t at = 0; at != bytes; ++at) ASSERT_LE(memory[at], 1) << "old content, or zeros";
    std::memset(memory, 2, bytes);
    for (std::size_t at = 0; at != bytes; ++at) ASSERT_EQ(memory[at], 2);
    unmap(memory, bytes);
    EXPECT_FALSE(offer(memory, bytes)) << "no longer mapped";
}

TEST(LinuxReserve, AlignedRangeTakesNoExtraAddressSpace) {
    address_space_bytes();
    const std::size_t before = address_space_bytes();
    void* const address = reserve(8 * mib, 1024 * mib);
    ASSERT_NE(address, nullptr);
    const std::size_t after = address_space_bytes();
    EXPECT_EQ(after - before, 8 * mib);
    release(address, 8 * mib);
}

TEST(LinuxDecommit, DropsPagesAndKeepsOneMapping) {
    const Mapping memory(16 * page_bytes());
    ASSERT_TRUE(prefault(memory.begin, memory.bytes));
    ASSERT_TRUE(decommit(memory.begin, 8 * page_bytes()));
    EXPECT_EQ(memory.pages_in_memory(), 8U);
    EXPECT_FALSE(is_mapping(memory.begin, 8 * page_bytes()));
}

TEST(LinuxDecommit, LockedMemoryIsUnlockedAndDropped) {
    // The sanitizers replace mlock and munlock by functions that do nothing.
    if constexpr (testing::sanitized()) GTEST_SKIP();
    const Mapping memory(2 * page_bytes());
    *memory.begin = 7;
    ASSERT_EQ(mlock(memory.begin, memory.bytes), 0);
    EXPECT_TRUE(decommit(memory.begin, page_bytes()));
    EXPECT_EQ(memory.pages_in_memory(), 1U);
    EXPECT_EQ(*memory.begin, 0);
}

TEST(LinuxDecommit, RejectsUnreservedRange) {
    void* const gone = map(page_bytes(), page_bytes());
    unmap(gone, page_bytes());
    EXPECT_FALSE(decommit(gone, page_bytes()));
}

TEST(LinuxCommitAnew, ResetsPagesPoliciesAndLocks) {
    const auto policy_at = [](void* address) {
        constexpr unsigned long of_address = 2;  // MPOL_F_ADDR
        int policy = -1;
        EXPECT_EQ(syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, address, of_address), 0);
        return policy;
    };
    const Mapping memory(16 * mib, 2 * mib);
    const int usual = policy_at(memory.begin);
    *memory.begin = 7;
    const bool has_policies =
        set_numa_policy(memory.begin, memory.bytes, NumaPolicy::interleave, 0);
    EXPECT_EQ(policy_at(memory.begin) != usual, has_policies);
    (void)prefer_huge_pages(memory.begin, memory.bytes);
    (void)syscall(SYS_mlock, memory.begin, page_bytes());
    ASSERT_TRUE(commit_anew(memory.begin, memory.bytes));
    EXPECT_EQ(memory.pages_in_memory(), 0U);
    EXPECT_EQ(policy_at(memory.begin), usual);
    EXPECT_EQ(*memory.begin, 0);
    EXPECT_EQ(memory.pages_in_memory(), 1U) << "the request for huge pages was kept";
}

TEST(LinuxCommitAnew, PagesAreGoneWhereNewMappingsAreLocked) {
    // The sanitizers replace the functions of these names by some that do nothing.
    if constexpr (testing::sanitized()) GTEST_SKIP() << "the sanitizers lock nothing";
    constexpr int cannot = 77;
    const Mapping memory(16 * page_bytes());
    const int code = testing::exit_code_of_child([&] {
        *memory.begin = 7;
        if (mlockall(MCL_FUTURE) != 0) return cannot;
        if (!commit_anew(memory.begin, memory.bytes)) return 1;
        return memory.pages_in_memory() == 0 && *memory.begin == 0 ? 0 : 2;
    });
    if (code == cannot) GTEST_SKIP() << "this process may lock no memory";
    EXPECT_EQ(code, 0);
}

TEST(LinuxPrefault, BringsEveryPageIntoMemory) {
    const Mapping memory(16 * page_bytes());
    EXPECT_EQ(memory.pages_in_memory(), 0U);
    EXPECT_TRUE(prefault(memory.begin, memory.bytes));
    EXPECT_EQ(memory.pages_in_memory(), 16U);
}

TEST(LinuxPrefault, RejectsUnreservedRange) {
    void* const gone = map(page_bytes(), page_bytes());
    unmap(gone, page_bytes());
    EXPECT_FALSE(prefault(gone, page_bytes()));
}

TEST(LinuxPrefault, RejectsUncommittedMemoryIfKernelSupportsAdvice) {
    void* const reserved = reserve(page_bytes(), page_bytes());
    const bool knows = madvise(reserved, 0, static_cast<int>(advice_populate_write)) == 0;
    // Older kernels touch the pages, which faults.
    EXPECT_EQ(holds_in_child([&] { return !prefault(reserved, page_bytes()); }), knows);
    release(reserved, page_bytes());
}

/// Makes madvise with the populate advice fail in this process, as on kernels before 5.14.
bool forget_populate_write() {
    const auto low_half_of_advice = static_cast<unsigned>(offsetof(seccomp_data, args[2]));
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, nr))),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(SYS_madvise), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, low_half_of_advice),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice_populate_write, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(EINVAL)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(LinuxPrefault, TouchesPagesOnOldKernels) {
    const Mapping memory(16 * page_bytes());
    EXPECT_TRUE(holds_in_child([&] {
        return forget_populate_write() && prefault(memory.begin, memory.bytes) &&
               memory.pages_in_memory() == 16;
    }));
}

// Policies ---------------------------------------------------------------------------------------

/// Returns the range's policy as the kernel reports it; 0 for the default and if it reports none.
int policy_of(void* address) {
    constexpr unsigned long of_address = 2;
    int policy = 0;
    syscall(SYS_get_mempolicy, &policy, nullptr, 0UL, address, of_address);
    return policy;
}

TEST(LinuxNuma, HasAtLeastOneNode) {
    EXPECT_GE(numa_node_count(), 1U);
    EXPECT_LE(numa_node_count(), 1024U);
}

TEST(LinuxNuma, PreferSetsPolicyOfRange) {
    const Mapping memory(4 * page_bytes());
    // A container may forbid this, which the result must report.
    const bool done = set_numa_policy(memory.begin, memory.bytes, NumaPolicy::prefer, 0);
    EXPECT_EQ(policy_of(memory.begin), done ? 1 : 0);
    EXPECT_TRUE(prefault(memory.begin, memory.bytes));
}

TEST(LinuxNuma, InterleaveSetsPolicyOfRange) {
    const Mapping memory(4 * page_bytes());
    const bool done = set_numa_policy(memory.begin, memory.bytes, NumaPolicy::interleave, 0);
    EXPECT_EQ(policy_of(memory.begin), done ? 3 : 0);
    EXPECT_TRUE(prefault(memory.begin, memory.bytes));
}

TEST(LinuxNuma, RejectsMissingNode) {
    const Mapping memory(page_bytes());
    EXPECT_FALSE(set_numa_policy(memory.begin, memory.bytes, NumaPolicy::prefer, 1023));
    EXPECT_FALSE(set_numa_policy(memory.begin, memory.bytes, NumaPolicy::prefer, 1024));
    EXPECT_FALSE(set_numa_policy(memory.begin, memory.bytes, NumaPolicy::prefer, UINT32_MAX));
}

// Limits -----------------------------------------------------------------------------------------

bool set_soft_limit(decltype(RLIMIT_AS) resource, std::size_t bytes) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0) return false;
    limit.rlim_cur = bytes;
    return setrlimit(resource, &limit) == 0;
}

bool is_just_below(std::size_t value, std::size_t limit) {
    return value <= limit && value > limit - 8 * mib;
}

TEST(LinuxLimits, AvailableAddressSpaceFollowsLimit) {
    EXPECT_TRUE(holds_in_child([] {
        return set_soft_limit(RLIMIT_AS, address_space_bytes() + 256 * mib) &&
               is_just_below(available_address_space(), 256 * mib) &&
               available_memory() <= 256 * mib;
    }));
}

TEST(LinuxLimits, ReservationBeyondAddressSpaceLimitFails) {
    EXPECT_TRUE(holds_in_child([] {
        if (!set_soft_limit(RLIMIT_AS, address_space_bytes() + 256 * mib)) return false;
        const bool refused =
            reserve(257 * mib, page_bytes()) == nullptr && map(257 * mib, page_bytes()) == nullptr;
        return refused && reserve(128 * mib, page_bytes()) != nullptr;
    }));
}

TEST(LinuxLimits, ReservationReducesAvailableAddressSpace) {
    EXPECT_TRUE(holds_in_child([] {
        return set_soft_limit(RLIMIT_AS, address_space_bytes() + 256 * mib) &&
               reserve(100 * mib, page_bytes()) != nullptr &&
               is_just_below(available_address_space(), 156 * mib);
    }));
}

TEST(LinuxLimits, UseAboveAddressSpaceLimitLeavesNothing) {
    EXPECT_TRUE(holds_in_child([] {
        available_memory();  // The stack must not need to grow below the limit.
        return set_soft_limit(RLIMIT_AS, mib) && available_address_space() == 0 &&
               available_memory() == 0;
    }));
}

TEST(LinuxLimits, DataLimitAppliesToCommitAndNotToReserve) {
    EXPECT_TRUE(holds_in_child([] {
        if (!set_soft_limit(RLIMIT_DATA, data_bytes() + 64 * mib)) return false;
        void* const address = reserve(256 * mib, page_bytes());
        if (address == nullptr || !is_just_below(available_memory(), 64 * mib)) return false;
        return !commit(address, 256 * mib) && commit(address, 16 * mib);
    }));
}

TEST(LinuxLimits, CommittableMemoryFollowsDataLimitOnly) {
    EXPECT_TRUE(holds_in_child([] {
        const std::size_t before = committable_memory();
        if (!set_soft_limit(RLIMIT_AS, address_space_bytes() + 64 * mib)) return false;
        if (before > 512 * mib && committable_memory() < 256 * mib) return false;
        return set_soft_limit(RLIMIT_DATA, data_bytes() + 64 * mib) &&
               committable_memory() <= 64 * mib;
    }));
}

TEST(LinuxLimits, FailedMapTakesNoAddressSpace) {
    EXPECT_TRUE(holds_in_child([] {
        if (!set_soft_limit(RLIMIT_DATA, data_bytes() + 64 * mib)) return false;
        const std::size_t before = address_space_bytes();
        return map(256 * mib, page_bytes()) == nullptr && address_space_bytes() == before;
    }));
}

TEST(LinuxLimits, AddressSpaceIsUnlimitedWithoutLimit) {
    EXPECT_TRUE(holds_in_child([] {
        return set_soft_limit(RLIMIT_AS, RLIM_INFINITY) && available_address_space() == SIZE_MAX;
    }));
}

TEST(LinuxLimits, AvailableIsAtMostTotal) {
    EXPECT_GT(total_memory(), 0U);
    EXPECT_LE(available_memory(), total_memory());
}

TEST(LinuxResident, GrowsByTouchedMemory) {
    const Mapping memory(64 * mib);
    const std::size_t before = resident_memory();
    ASSERT_TRUE(prefault(memory.begin, memory.bytes));
    EXPECT_GE(resident_memory(), before + 48 * mib);
    EXPECT_LE(resident_memory(), total_memory());
}

}  // namespace
}  // namespace tensorpool::platform
