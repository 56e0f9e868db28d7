#include "replay/contender_process.hpp"

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

/// What could change how an allocator works. Where libraries lie does not.
bool is_tuning(std::string_view variable) {
    static constexpr std::array beginnings = {
        "TENSORPOOL_", "LD_", "MALLOC_", "GLIBC_TUNABLES=", "TCMALLOC_", "MIMALLOC_", "JE_"};
    if (variable.starts_with("LD_LIBRARY_PATH=")) return false;
    return std::ranges::any_of(beginnings,
                               [&](const char* name) { return variable.starts_with(name); });
}

std::vector<std::string> environment_of(const Contender& contender) {
    std::vector<std::string> texts;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        if (!is_tuning(*variable)) texts.emplace_back(*variable);
    }
    if (contender.preload) texts.push_back("LD_PRELOAD=" + contender.library);
    for (const auto& [name, value] : contender.variables) texts.push_back(name + '=' + value);
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
            throw CommandError(finding, fmt::format("no file descriptor for a contender: {}",
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

pid_t start(const Contender& contender, Touch touch, int plan, int answer, int errors) {
    std::vector<std::string> words = {"tensorpool", ContenderTask::word};
    for (const int number :
         {static_cast<int>(contender.calls), static_cast<int>(touch), answer, plan}) {
        words.push_back(std::to_string(number));
    }
    std::vector<std::string> variables = environment_of(contender);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    // Onto itself: it stays open over exec.
    for (const int kept : {answer, plan}) {
        if (kept >= 0) posix_spawn_file_actions_adddup2(&actions, kept, kept);
    }
    posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    pid_t process = -1;
    const int error = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                                  null_ended(words).data(), null_ended(variables).data());
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0) return process;
    throw CommandError(finding,
                       fmt::format("no process for {}: {}", contender.name, std::strerror(error)));
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
    std::optional<ContenderAnswer> answer;
    int status = 0;
    std::string errors;
};

Ran run(const Contender& contender, Touch touch, int plan) {
    const File answer(memfd_create("answer", MFD_CLOEXEC));
    const File errors(memfd_create("errors", MFD_CLOEXEC));
    Ran ran;
    ran.status = wait_for(start(contender, touch, plan, answer.get(), errors.get()));
    ran.errors = content_of(errors.get());
    ContenderAnswer read = {};
    if (pread(answer.get(), &read, sizeof read, 0) == sizeof read) ran.answer = read;
    return ran;
}

std::string how_it_ended(const Ran& ran) {
    std::string text = WIFSIGNALED(ran.status)
                           ? fmt::format("signal {} ({}) ended it", WTERMSIG(ran.status),
                                         strsignal(WTERMSIG(ran.status)))
                           : fmt::format("it ended with status {}", WEXITSTATUS(ran.status));
    if (!ran.errors.empty()) text += ": " + ran.errors;
    return text;
}

std::string found_malloc(const Contender& contender, const ContenderAnswer& answer) {
    const std::string file = answer.malloc_file;
    const std::string& library = contender.library;
    // libc.so.6, or with its version in the name as libc-2.31.so.
    if (library.empty() || file.starts_with(library + '.') || file.starts_with(library + '-') ||
        file == library) {
        return "";
    }
    return fmt::format("malloc lay in {}, expected {}, which the Debian package {} brings",
                       file.empty() ? "no file" : printable(file), library, contender.package);
}

}  // namespace

ContenderAnswer run_contender(const Contender& contender, Touch touch, int plan) {
    const Ran ran = run(contender, touch, plan);
    std::string problem = ran.answer ? ran.answer->problem : how_it_ended(ran);
    if (problem.empty()) problem = found_malloc(contender, *ran.answer);
    if (problem.empty()) return *ran.answer;
    throw CommandError(finding, fmt::format("{}: {}", contender.name, problem));
}

std::string what_hinders(const Contender& contender) {
    const Ran ran = run(contender, Touch::none, -1);
    if (!ran.answer) return how_it_ended(ran);
    if (contender.calls == Calls::pool && !ran.errors.empty()) {
        throw CommandError(wrong_usage, fmt::format("{} does not take its options: {}",
                                                    contender.name, ran.errors));
    }
    if (std::string problem = found_malloc(contender, *ran.answer); !problem.empty()) {
        return problem;
    }
    return contender.never_decays && ran.answer->never_decays == 0
               ? "jemalloc did not take MALLOC_CONF, or is not built as Debian's is"
               : "";
}

}  // namespace tensorpool::command::replay
