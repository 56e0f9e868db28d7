#include "serve/browser.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace tensorpool::command::serve {
namespace {

/// The browser gets neither this program's signal mask nor its terminal.
struct Start {
    Start() {
        posix_spawn_file_actions_init(&files);
        for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
            posix_spawn_file_actions_addopen(&files, descriptor, "/dev/null", O_RDWR, 0);
        }
        posix_spawnattr_init(&attributes);
        sigset_t signals;
        sigemptyset(&signals);
        posix_spawnattr_setsigmask(&attributes, &signals);
        sigaddset(&signals, SIGPIPE);
        sigaddset(&signals, SIGCHLD);
        posix_spawnattr_setsigdefault(&attributes, &signals);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    ~Start() {
        posix_spawn_file_actions_destroy(&files);
        posix_spawnattr_destroy(&attributes);
    }
    Start(const Start&) = delete;
    Start& operator=(const Start&) = delete;

    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
};

}  // namespace

void open_browser(const std::string& url) {
    std::signal(SIGCHLD, SIG_IGN);  // nobody waits for it
    const Start start;
    std::string program = "xdg-open";
    std::string address = url;
    char* words[] = {program.data(), address.data(), nullptr};
    const int error =
        posix_spawnp(nullptr, words[0], &start.files, &start.attributes, words, environ);
    if (error == 0) return;
    fmt::print(stderr, "tensorpool: serve: cannot start xdg-open: {}; open {} yourself\n",
               std::strerror(error), url);
}

}  // namespace tensorpool::command::serve
