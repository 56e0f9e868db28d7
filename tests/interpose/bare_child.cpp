// A child that is made by the system call clone, without the handlers of a fork, as sandboxes make
// it. It lacks the memory that the process shares with others; it must be able to use malloc.

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

void use_memory() {
    for (const std::size_t bytes : {100, 5'000, 100'000, 3'000'000}) {
        void* const block = hidden(std::malloc(bytes));
        fill(block, bytes, 7);
        expect(is_filled(block, bytes, 7), "the content of a block", bytes);
        std::free(block);
    }
}

void expect_success_of(pid_t child, const char* name) {
    if (child == 0) {
        use_memory();
        _exit(failures != 0 ? 1 : 0);
    }
    int status = 0;
    expect(child > 0 && waitpid(child, &status, 0) == child && status == 0, name,
           static_cast<std::size_t>(status));
}

}  // namespace

int main() {
    expect_interposed();
    use_memory();
    for (int turn = 0; turn < 50; ++turn) {
        expect_success_of(static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)), "clone");
        expect_success_of(fork(), "fork");
#if __GLIBC_PREREQ(2, 34)
        expect_success_of(_Fork(), "_Fork");
#endif
    }
    use_memory();
    return failures != 0 ? 1 : 0;
}
