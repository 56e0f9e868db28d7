#include "replay/report.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iterator>

namespace tensorpool::command::replay {
namespace {

struct PoolOption {
    const char* name;
    const char* variable;  // read by the global pool: see <tensorpool/pool_options.hpp>
};

constexpr PoolOption pool_options[] = {
    {"initial_capacity", "TENSORPOOL_INITIAL_CAPACITY"},
    {"max_capacity", "TENSORPOOL_MAX_CAPACITY"},
    {"max_allocation", "TENSORPOOL_MAX_ALLOCATION"},
    {"growth_step", "TENSORPOOL_GROWTH_STEP"},
    {"growth_factor", "TENSORPOOL_GROWTH_FACTOR"},
    {"growth_fraction", "TENSORPOOL_GROWTH_FRACTION"},
    {"retain", "TENSORPOOL_RETAIN_BYTES"},
    {"retain_ms", "TENSORPOOL_RETAIN_MS"},
    {"retain_background", "TENSORPOOL_RETAIN_BACKGROUND"},
    {"huge_pages", "TENSORPOOL_HUGE_PAGES"},
    {"numa", "TENSORPOOL_NUMA"},
    {"checks", "TENSORPOOL_CHECKS"},
};

/// Makes jemalloc keep freed memory forever and treat large blocks as others, as its users do for
/// programs of this kind.
constexpr const char* tuned = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0";

const std::vector<ReplayAllocator>& known() {
    static const std::vector<ReplayAllocator> allocators = {
        {"none", Calls::floor, "", false, "", {}, false},
        {"plan", Calls::plan, "", false, "", {}, false},
        {"pool", Calls::pool, "", false, "", {}, false},
        {"glibc", Calls::malloc, "libc", false, "libc6", {}, false},
        {"tcmalloc",
         Calls::malloc,
         "libtcmalloc_minimal.so.4",
         true,
         "libtcmalloc-minimal4",
         {},
         false},
        {"jemalloc", Calls::malloc, "libjemalloc.so.2", true, "libjemalloc2", {}, false},
        {"jemalloc-tuned",
         Calls::malloc,
         "libjemalloc.so.2",
         true,
         "libjemalloc2",
         {{"MALLOC_CONF", tuned}},
         true},
        {"mimalloc", Calls::malloc, "libmimalloc.so.2", true, "libmimalloc2.0", {}, false},
    };
    return allocators;
}

std::vector<std::string> parts_of(const std::string& text, char between) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(between, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

ReplayAllocator allocator_of(const std::string& word) {
    const std::vector<std::string> parts = parts_of(word, ':');
    const auto found = std::ranges::find(known(), parts.front(), &ReplayAllocator::name);
    if (found == known().end()) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: there is no allocator {}; there are {}",
                                       printable(parts.front()), allocator_names()));
    }
    ReplayAllocator allocator = *found;
    if (parts.size() == 1) return allocator;
    if (allocator.calls != Calls::pool) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: only the pool takes options, not {}; found {}",
                                       allocator.name, printable(word)));
    }
    allocator.name = word;
    allocator.variables = pool_variables(std::span(parts).subspan(1));
    return allocator;
}

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

Descriptor memory_file(const char* name) {
    Descriptor file(memfd_create(name, MFD_CLOEXEC));
    if (file) return file;
    throw CommandError(
        finding, fmt::format("no file descriptor for an allocator: {}", std::strerror(errno)));
}

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
    const Descriptor answer = memory_file("answer");
    const Descriptor errors = memory_file("errors");
    Ran ran;
    ran.status = wait_for(start(allocator, touch, plan, answer.number(), errors.number()));
    ran.errors = content_of(errors.number());
    ReplayAnswer read = {};
    if (pread(answer.number(), &read, sizeof read, 0) == sizeof read) ran.answer = read;
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

std::string option_names() {
    std::string names;
    for (const PoolOption& option : pool_options) names += fmt::format(", {}", option.name);
    return names.substr(2);
}

Variables pool_variables(std::span<const std::string> options) {
    Variables variables;
    for (const std::string& option : options) {
        const std::size_t equals = option.find('=');
        const std::string name = option.substr(0, equals);
        const auto* const found = std::ranges::find(pool_options, name, &PoolOption::name);
        if (equals == std::string::npos || found == std::end(pool_options)) {
            throw CommandError(wrong_usage,
                               fmt::format("{} is not an option of the pool, NAME=VALUE; there "
                                           "are {}",
                                           printable(option), option_names()));
        }
        variables.emplace_back(found->variable, option.substr(equals + 1));
    }
    return variables;
}

std::string allocator_names() {
    std::string names;
    for (const ReplayAllocator& allocator : known()) names += ", " + allocator.name;
    return names.substr(2);
}

std::vector<ReplayAllocator> allocators_of(std::span<const std::string> names,
                                           std::span<const std::string> options) {
    std::vector<ReplayAllocator> allocators;
    std::ranges::transform(names, std::back_inserter(allocators), allocator_of);
    const Variables variables = pool_variables(options);
    for (ReplayAllocator& allocator : allocators) {
        if (allocator.calls == Calls::pool && allocator.variables.empty()) {
            allocator.variables = variables;
        }
    }
    return allocators;
}

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
