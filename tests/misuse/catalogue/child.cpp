#include "misuse/catalogue/child.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

#include "misuse/catalogue/catalogue.hpp"

namespace tensorpool::misuse {
namespace {

[[noreturn]] void become(const char* name, const std::string& mode, const char* preload,
                         int errors) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(errors, STDERR_FILENO);
    unsetenv("TENSORPOOL_ON_MISUSE");
    setenv("TENSORPOOL_CHECKS", mode.c_str(), 1);
    setenv("TENSORPOOL_GUARD_SHARE", "1", 1);
    setenv("TENSORPOOL_INTERPOSE_MIN", "1", 1);
    if (preload != nullptr) setenv("LD_PRELOAD", preload, 1);
    execl("/proc/self/exe", "misuse_catalogue", name, mode.c_str(), nullptr);
    _exit(127);
}

std::string content_of(int file) {
    std::string content(static_cast<std::size_t>(lseek(file, 0, SEEK_END)), '\0');
    const ssize_t got = pread(file, content.data(), content.size(), 0);
    content.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return content;
}

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

/// Returns the kind that a report of this level names; empty if the text begins with none.
std::string kind_of_report(const std::string& text, const std::string& level) {
    const std::regex form("tensorpool: " + level +
                          ": ([a-z-]+) ptr=0x[0-9a-f]+ size=([0-9]+|-) requested=([0-9]+|-) "
                          "pool=[^ ]+ thread=[0-9]+");
    const std::string line = first_line(text);
    std::smatch parts;
    return std::regex_match(line, parts, form) ? parts[1].str() : "";
}

/// Returns "throws" with the kind of exception, after the kind that was reported before, if any.
std::string thrown_by(const std::string& errors) {
    const std::string reported = kind_of_report(errors, "error");
    const std::size_t begin = errors.rfind("throws ");
    if (begin == std::string::npos || (begin != 0 && reported.empty())) return first_line(errors);
    const std::string thrown = errors.substr(begin, errors.find(':', begin) - begin);
    return reported.empty() ? thrown : reported + ", " + thrown;
}

}  // namespace

Child::Child(const char* name, const std::string& mode, const char* preload) {
    std::fflush(stdout);
    const int errors = memfd_create("errors", MFD_CLOEXEC);
    const pid_t child = fork();
    if (child == 0) become(name, mode, preload, errors);
    waitpid(child, &status_, 0);
    errors_ = content_of(errors);
    close(errors);
}

std::string Child::outcome() const {
    if (WIFSIGNALED(status_)) {
        const int signal = WTERMSIG(status_);
        const std::string kind = kind_of_report(errors_, "fatal");
        if (signal == SIGABRT && !kind.empty()) return kind;
        // Such as "free(): invalid pointer".
        if (signal == SIGABRT && errors_.find("(): invalid ") < 20) return by_next_allocator;
        if (signal == SIGSEGV && errors_.empty()) return by_system;
        return "signal " + std::to_string(signal) + ": " + first_line(errors_);
    }
    if (WEXITSTATUS(status_) == thrown) return thrown_by(errors_);
    const bool is_silent = errors_.empty();
    if (is_silent && WEXITSTATUS(status_) == 0) return passes;
    if (is_silent && WEXITSTATUS(status_) == harmless) return misuse::harmless;
    return "exit " + std::to_string(WEXITSTATUS(status_)) + ": " + first_line(errors_);
}

}  // namespace tensorpool::misuse
