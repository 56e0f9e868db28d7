#include "started_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>

#include "common/posix.hpp"

namespace tensorpool::command {
namespace {

constexpr int max_ms = 60'000;

}  // namespace

StartedProgram::StartedProgram(std::vector<std::string> arguments) {
    int input[2];
    int output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) {
        throw std::runtime_error("cannot create a pipe");
    }
    errors_ = memfd_create("errors", MFD_CLOEXEC);
    const std::vector<char*> pointers = null_ended(arguments);
    process_ = fork();
    if (process_ < 0) throw std::runtime_error("cannot create a process");
    if (process_ == 0) {
        dup2(input[0], STDIN_FILENO);
        dup2(output[1], STDOUT_FILENO);
        dup2(errors_, STDERR_FILENO);
        execv(pointers[0], pointers.data());
        _exit(127);
    }
    close(input[0]);
    close(output[1]);
    input_ = input[1];
    output_ = output[0];
}

StartedProgram::~StartedProgram() {
    if (process_ > 0) {
        ::kill(process_, SIGKILL);
        waitpid(process_, nullptr, 0);
    }
    for (const int file : {input_, output_, errors_}) close(file);
}

void StartedProgram::write_line(const std::string& line) {
    const std::string text = line + '\n';
    if (::write(input_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
        throw std::runtime_error("the program does not read its input");
    }
}

std::string StartedProgram::read_line() {
    for (;;) {
        const std::size_t end = unread_.find('\n');
        if (end != std::string::npos) {
            const std::string line = unread_.substr(0, end);
            unread_.erase(0, end + 1);
            return line;
        }
        pollfd output{output_, POLLIN, 0};
        if (poll(&output, 1, max_ms) <= 0) return "";
        char part[4096];
        const ssize_t count = ::read(output_, part, sizeof part);
        if (count <= 0) return "";
        unread_.append(part, static_cast<std::size_t>(count));
    }
}

void StartedProgram::kill(int signal) {
    ::kill(process_, signal);
}

int StartedProgram::wait() {
    int status = 0;
    pid_t ended = 0;
    for (int waited = 0; waited < max_ms && ended == 0; waited += 10) {
        ended = waitpid(process_, &status, WNOHANG);
        if (ended == 0) usleep(10'000);
    }
    if (ended != process_) return -1;
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string StartedProgram::errors() const {
    std::string text(static_cast<std::size_t>(lseek(errors_, 0, SEEK_END)), '\0');
    const ssize_t count = pread(errors_, text.data(), text.size(), 0);
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    return text;
}

}  // namespace tensorpool::command
