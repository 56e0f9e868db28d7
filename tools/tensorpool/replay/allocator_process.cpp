#include "replay/allocator_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

/// Returns whether a variable may change how an allocator works. LD_LIBRARY_PATH does not.
bool is_tuning(std::string_view variable) {
    static constexpr std::array beginnings = {
        "TENSORPOOL_", "LD_", "MALLOC_", "GLIBC_TUNABLES=", "TCMALLOC_", "MIMALLOC_", "JE_"};
    if (variable.starts_with("LD_LIBRARY_PATH=")) return false;
    return std::ranges::any_of(beginnings,
                               [&](const char* name) { return variable.starts_with(name); });
}

std::vector<std::string> environment_of(const ReplayAllocator& allocator) {
    std::vector<std::string> texts;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!is_tuning(*variable)) texts.emplace_back(*variable);
    }
    if (allocator.preload) texts.push_back("LD_PRELOAD=" + allocator.library);
    for (const auto& [name, value] : allocator.variables) texts.push_back(name + '=' + value);
    return texts;
}

std::vector<char*> null_ended(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

class File {
public:
    explicit File(int descriptor) : descriptor_(descriptor) {
        if (descriptor < 0) {
            throw CommandError(finding, fmt::format("no file descriptor for an allocator: {}",
                                                    std::strerror(errno)));
        }
    }
    ~File() { close(descriptor_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int get() const noexcept { return descriptor_; }

private:
    int descriptor_;
};

pid_t start(const ReplayAllocator& allocator, Touch touch, int plan, int answer, int errors) {
    std::vector<std::string> arguments = {"tensorpool", ReplayTask::argument};
    for (const int number :
         {static_cast<int>(allocator.calls), static_cast<int>(touch), answer, plan}) {
        arguments.push_back(std::to_string(number));
    }
    std::vector<std::string> variables = environment_of(allocator);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Duplicating a descriptor onto itself keeps it open over exec.
    for (const int kept : {answer, plan}) {
        if (kept >= 0) posix_spawn_file_actions_adddup2(&actions, kept, kept);
    }
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    pid_t process = -1;
    const int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                                  null_ended(arguments).data(), null_ended(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return process;
    throw CommandError(finding,
                       fmt::format("no process for {}: {}", allocator.name, std::strerror(error)));
}

int wait_for(pid_t process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

std::string content_of(int file) {
    std::string content(512, '\0');
    const ssize_t count = pread(file, content.data(), content.size(), 0);
    content.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    while (content.ends_with('\n')) content.pop_back();
    return printable(content);
}

struct Ran {
    std::optional<ReplayAnswer> answer;
    int status = 0;
    std::string errors;
};

Ran run(const ReplayAllocator& allocator, Touch touch, int plan) {
    const File answer(memfd_create("answer", MFD_CLOEXEC));
    const File errors(memfd_create("errors", MFD_CLOEXEC));
    Ran ran;
    ran.status = wait_for(start(allocator, touch, plan, answer.get(), errors.get()));
    ran.errors = content_of(errors.get());
    ReplayAnswer read = {};
    if (pread(answer.get(), &read, sizeof read, 0) == sizeof read) ran.answer = read;
    return ran;
}

std::string how_it_ended(const Ran& ran) {
    std::string text =
        WIFSIGNALED(ran.status)
            ? fmt::format("its process was ended by signal {} ({})", WTERMSIG(ran.status),
                          strsignal(WTERMSIG(ran.status)))
            : fmt::format("its process ended with status {}", WEXITSTATUS(ran.status));
    if (!ran.errors.empty()) text += ": " + ran.errors;
    return text;
}

std::string found_malloc(const ReplayAllocator& allocator, const ReplayAnswer& answer) {
    const std::string file = answer.malloc_file;
    const std::string& library = allocator.library;
    // The C library is libc.so.6, or has its version in the name, such as libc-2.31.so.
    if (library.empty() || file.starts_with(library + '.') || file.starts_with(library + '-') ||
        file == library) {
        return "";
    }
    return fmt::format("malloc is in {}, expected {} from the Debian package {}",
                       file.empty() ? "no file" : printable(file), library, allocator.package);
}

}  // namespace

ReplayAnswer run_allocator(const ReplayAllocator& allocator, Touch touch, int plan) {
    const Ran ran = run(allocator, touch, plan);
    std::string problem = ran.answer ? ran.answer->problem : how_it_ended(ran);
    if (problem.empty()) problem = found_malloc(allocator, *ran.answer);
    if (problem.empty()) return *ran.answer;
    throw CommandError(finding, fmt::format("{}: {}", allocator.name, problem));
}

std::string why_unavailable(const ReplayAllocator& allocator) {
    const Ran ran = run(allocator, Touch::none, -1);
    if (!ran.answer) return how_it_ended(ran);
    if (allocator.calls == Calls::pool && !ran.errors.empty()) {
        throw CommandError(wrong_usage,
                           fmt::format("{} rejects its options: {}", allocator.name, ran.errors));
    }
    if (std::string problem = found_malloc(allocator, *ran.answer); !problem.empty()) {
        return problem;
    }
    return allocator.never_decays && ran.answer->never_decays == 0
               ? "jemalloc ignored MALLOC_CONF, or is not built as Debian's is"
               : "";
}

}  // namespace tensorpool::command::replay
