#include <tensorpool/memory_lock.hpp>

#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace tensorpool {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

LockOutcome refused(LockLimit limit) {
    return {.limit = limit, .asked_bytes = 1024 * mib, .locked_bytes = 64 * mib};
}

TEST(LockOutcomeText, IsEmptyOnSuccess) {
    EXPECT_EQ(to_text({.asked_bytes = mib, .locked_bytes = mib}), "");
}

TEST(LockOutcomeText, ExplainsHowToRaiseTheSoftLimit) {
    LockOutcome outcome = refused(LockLimit::soft);
    outcome.limit_bytes = 100 * mib;
    outcome.hard_limit_bytes = SIZE_MAX;
    outcome.needed_bytes = 1025 * mib;
    EXPECT_EQ(to_text(outcome),
              "tensorpool: lock 1 GiB: locked 64 MiB, the rest stays unlocked: the limit of locked "
              "memory of this process (RLIMIT_MEMLOCK) is 100 MiB, hard limit unlimited, and would "
              "have to be 1 GiB; to raise it: `ulimit -l 1049600` in the shell that starts the "
              "program, LimitMEMLOCK=1074790400 in its systemd unit, or --ulimit "
              "memlock=1074790400:1074790400 for its container");
}

TEST(LockOutcomeText, ExplainsHowToRaiseTheHardLimit) {
    LockOutcome outcome = refused(LockLimit::hard);
    outcome.limit_bytes = 100 * mib;
    outcome.hard_limit_bytes = 200 * mib;
    outcome.needed_bytes = 1024 * mib;
    EXPECT_EQ(to_text(outcome),
              "tensorpool: lock 1 GiB: locked 64 MiB, the rest stays unlocked: the limit of locked "
              "memory of this process (RLIMIT_MEMLOCK) is 100 MiB, hard limit 200 MiB, and would "
              "have to be 1 GiB; to raise it: a line `USER - memlock 1048576` in "
              "/etc/security/limits.conf and a new login, LimitMEMLOCK=1073741824 in its systemd "
              "unit, or --ulimit memlock=1073741824:1073741824 for its container");
}

TEST(LockOutcomeText, ReportsTheMemoryOfTheMachine) {
    LockOutcome outcome = refused(LockLimit::machine);
    outcome.limit_bytes = 2048 * mib;
    outcome.available_bytes = 512 * mib;
    EXPECT_EQ(to_text(outcome),
              "tensorpool: lock 1 GiB: locked 64 MiB, the rest stays unlocked: the machine has 512 "
              "MiB of its 2 GiB available; end other programs, or lock less");
}

TEST(LockOutcomeText, ReportsTheLimitOfTheContainer) {
    LockOutcome outcome = refused(LockLimit::container);
    outcome.limit_bytes = 2048 * mib;
    outcome.available_bytes = 512 * mib;
    EXPECT_EQ(to_text(outcome),
              "tensorpool: lock 1 GiB: locked 64 MiB, the rest stays unlocked: the limit of this "
              "container (cgroup) is 2 GiB, which leaves 512 MiB; to raise it: --memory= of docker "
              "or podman, resources.limits.memory of a pod, or MemoryMax= of a systemd unit");
}

TEST(LockOutcomeText, ReportsMissingPagesAndSystemErrors) {
    EXPECT_EQ(to_text(refused(LockLimit::pages)),
              "tensorpool: lock 1 GiB: locked 64 MiB, the rest stays unlocked: some of it is not "
              "mapped, or its file was cut short");
    LockOutcome outcome = refused(LockLimit::system);
    outcome.error = EINVAL;
    EXPECT_EQ(to_text(outcome),
              "tensorpool: lock 1 GiB: locked 64 MiB, the rest stays unlocked: Invalid argument");
}

}  // namespace
}  // namespace tensorpool
