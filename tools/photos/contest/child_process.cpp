#include "contest/child_process.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tensorpool::photos {
namespace {

/// The path of this program. The kernel names a process after the path it was started with, and
/// `tensorpool top --name tensorpool_photos` must find it.
std::string own_file() {
    return std::filesystem::read_symlink("/proc/self/exe").string();
}

[[noreturn]] void fail(const std::string& what, int error) {
    throw std::runtime_error("worker process: " + what + ": " + std::strerror(error));
}

/// A pipe that closes its open ends when it is destroyed.
class Pipe {
public:
    Pipe() {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot create a pipe", errno);
        write_end_ = ends[1];
        reader_ = fdopen(ends[0], "r");
        if (reader_ != nullptr) return;
        close(ends[0]);
        close(ends[1]);
        fail("cannot create a pipe", ENOMEM);
    }
    ~Pipe() {
        close_write_end();
        close_reader();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;

    int write_end() const noexcept { return write_end_; }
    std::FILE* reader() const noexcept { return reader_; }
    void close_write_end() noexcept {
        if (write_end_ >= 0) close(std::exchange(write_end_, -1));
    }
    void close_reader() noexcept {
        if (reader_ != nullptr) std::fclose(std::exchange(reader_, nullptr));
    }

private:
    int write_end_;
    std::FILE* reader_;
};

std::vector<std::string> environment_with_preload(const std::string& preload) {
    constexpr std::string_view variable = "LD_PRELOAD=";
    std::vector<std::string> settings;
    for (char** setting = environ; *setting != nullptr; ++setting) {
        if (!std::string_view(*setting).starts_with(variable)) settings.emplace_back(*setting);
    }
    if (!preload.empty()) settings.push_back(std::string(variable) + preload);
    return settings;
}

std::vector<char*> null_ended(std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    for (std::string& string : strings) pointers.push_back(string.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// Starts the child with `output` as its standard output, and returns its process id.
pid_t start(const ChildOrder& order, int output) {
    std::vector<std::string> arguments = order.arguments;
    arguments.insert(arguments.begin(), "tensorpool_photos");
    std::vector<std::string> environment = environment_with_preload(order.preload);

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    if (order.quiet) {
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    }
    pid_t child = 0;
    const std::string file = own_file();
    const int error = posix_spawn(&child, file.c_str(), &actions, nullptr,
                                  null_ended(arguments).data(), null_ended(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail("cannot be started", error);
    return child;
}

void read_lines(std::FILE* pipe, const std::function<void(const std::string&)>& on_line) {
    std::string line;
    for (int c = std::getc(pipe); c != EOF; c = std::getc(pipe)) {
        if (c != '\n') {
            line.push_back(static_cast<char>(c));
        } else {
            on_line(line);
            line.clear();
        }
    }
    if (!line.empty()) on_line(line);
}

Measurement wait_for(pid_t child) {
    int status = 0;
    rusage usage{};
    while (wait4(child, &status, 0, &usage) < 0) {
        if (errno != EINTR) fail("cannot be waited for", errno);
    }
    if (WIFSIGNALED(status)) {
        const int signal = WTERMSIG(status);
        throw std::runtime_error("a worker process ended by signal " + std::to_string(signal) +
                                 " (" + strsignal(signal) + ")");
    }
    if (WEXITSTATUS(status) != 0) {
        throw std::runtime_error("a worker process ended with status " +
                                 std::to_string(WEXITSTATUS(status)) + ", not 0");
    }
    return to_measurement(usage);
}

}  // namespace

Measurement run_self(const ChildOrder& order,
                     const std::function<void(const std::string&)>& on_line) {
    Pipe pipe;
    const pid_t child = start(order, pipe.write_end());
    pipe.close_write_end();
    try {
        read_lines(pipe.reader(), on_line);
    } catch (...) {
        pipe.close_reader();  // a child that still writes is ended by SIGPIPE
        waitpid(child, nullptr, 0);
        throw;
    }
    return wait_for(child);
}

}  // namespace tensorpool::photos
