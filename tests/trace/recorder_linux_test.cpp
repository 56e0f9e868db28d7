#include "trace/recorder.hpp"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>

#include <tensorpool/memory_pool.hpp>

#include "support/child_process.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool {
namespace {

/// Allocates a large block, which takes the slow path, where the control is created.
void take_slow_path() {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.allocate(std::size_t{1} << 20));
}

/// Makes the system refuse pages for memory of the control's size from now on.
bool refuse_control_pages() {
    constexpr unsigned advice_populate_write = 23;
    const auto word = [](unsigned argument) {
        return static_cast<unsigned>(offsetof(seccomp_data, args) + 8 * argument);
    };
    sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<unsigned>(offsetof(seccomp_data, nr))),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(SYS_madvise), 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word(1)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(trace::control_bytes), 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, word(2)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, advice_populate_write, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<unsigned>(ENOMEM)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

std::size_t mapped_controls() {
    std::ifstream lines("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line);) {
        count += line.find("memfd:tensorpool-control") != std::string::npos ? 1 : 0;
    }
    return count;
}

bool has_control_open() {
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const auto target = std::filesystem::read_symlink(file.path(), gone).string();
        if (target.find("tensorpool-control") != std::string::npos) return true;
    }
    return false;
}

TEST(Recorder, ControlWithoutPagesIsNotKept) {
    constexpr int cannot = 77;
    const int code = testing::exit_code_of_child([] {
        if (!refuse_control_pages()) return cannot;
        take_slow_path();
        return has_control_open() || mapped_controls() != 0 ? 1 : 0;
    });
    if (code == cannot) GTEST_SKIP() << "this system filters no calls";
    EXPECT_EQ(code, 0);
    EXPECT_TRUE(testing::holds_in_child([] {
        take_slow_path();
        return has_control_open() && mapped_controls() == 1;
    })) << "it is found by its name";
}

}  // namespace
}  // namespace tensorpool
