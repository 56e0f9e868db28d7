#include "platform/memory/numa_policy.hpp"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

// From the kernel's mempolicy.h.
constexpr int default_policy = 0;
constexpr int preferred = 1;
constexpr int interleave = 3;
constexpr unsigned long at_an_address = 2;  // MPOL_F_ADDR

/// Returns the policy of this thread or of an address; -1 if the kernel does not report it.
int policy_of(void* address = nullptr) {
    int policy = -1;
    unsigned long nodes[16] = {};
    const unsigned long what = address == nullptr ? 0 : at_an_address;
    if (syscall(SYS_get_mempolicy, &policy, nodes, 1025UL, address, what) != 0) return -1;
    return policy;
}

class NumaPolicyTest : public testing::Test {
protected:
    void SetUp() override {
        if (policy_of() == -1) GTEST_SKIP() << "this kernel does not support NUMA";
    }
};

TEST_F(NumaPolicyTest, AppliesToThreadForLifetimeOfObject) {
    ASSERT_EQ(policy_of(), default_policy);
    {
        const ThreadNumaPolicy policy(NumaPolicy::interleave, 0);
        EXPECT_TRUE(policy.is_set());
        EXPECT_EQ(policy_of(), interleave);
        {
            const ThreadNumaPolicy inner(NumaPolicy::prefer, 0);
            EXPECT_EQ(policy_of(), preferred);
        }
        EXPECT_EQ(policy_of(), interleave);
    }
    EXPECT_EQ(policy_of(), default_policy);
}

TEST_F(NumaPolicyTest, NoneAndMissingNodesChangeNothing) {
    const ThreadNumaPolicy none(NumaPolicy::none, 0);
    EXPECT_FALSE(none.is_set());
    const ThreadNumaPolicy unknown(NumaPolicy::prefer, numa_node_count() + 7);
    EXPECT_FALSE(unknown.is_set());
    const ThreadNumaPolicy impossible(NumaPolicy::prefer, 4096);
    EXPECT_FALSE(impossible.is_set());
    EXPECT_EQ(policy_of(), default_policy);
}

TEST_F(NumaPolicyTest, AppliesToRangeUntilRemoved) {
    void* const memory = map(page_bytes(), page_bytes());
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(set_numa_policy(memory, page_bytes(), NumaPolicy::interleave, 0));
    EXPECT_EQ(policy_of(memory), interleave);
    EXPECT_TRUE(set_numa_policy(memory, page_bytes(), NumaPolicy::prefer, 0));
    EXPECT_EQ(policy_of(memory), preferred);
    EXPECT_TRUE(set_numa_policy(memory, page_bytes(), NumaPolicy::none, 0));
    EXPECT_EQ(policy_of(memory), default_policy);
    EXPECT_FALSE(set_numa_policy(memory, page_bytes(), NumaPolicy::prefer, 4096));
    unmap(memory, page_bytes());
}

}  // namespace
}  // namespace tensorpool::platform
