// What /proc shows about other processes (proc(5)), and which processes may see it (ptrace(2),
// "Ptrace access mode checking").

#include "platform/process/processes.hpp"

#include <signal.h>
#include <sys/stat.h>

#include <climits>

#include "platform/platform.hpp"
#include "platform/process/process_status_linux.hpp"

namespace tensorpool::platform {
namespace {

std::string folder_of(std::uint64_t process) {
    return "/proc/" + std::to_string(process);
}

/// Returns the target of a link; "" if it cannot be read.
std::string target_of(const std::string& link) {
    char text[256];
    const ssize_t length = ::readlink(link.c_str(), text, sizeof text);
    return length < 0 ? std::string() : std::string(text, static_cast<std::size_t>(length));
}

/// Returns the number in the text of a name space's link, such as pid:[4026531836].
std::uint64_t bracketed(std::string_view text) noexcept {
    text.remove_prefix(std::min(text.find('[') + 1, text.size()));
    return parse_number(text).value_or(0);
}

std::string memory_file_text(std::string_view name) {
    return "/memfd:" + std::string(name) + " (deleted)";
}

/// Returns why a process that exists may not be looked into.
Look why_refused(std::uint64_t process) {
    const std::string folder = folder_of(process);
    struct stat owner {};
    if (::stat((folder + "/status").c_str(), &owner) != 0) {
        // A /proc that hides other users' processes (hidepid) reports them as missing.
        const bool possible = process != 0 && process <= INT_MAX;
        return possible && (::kill(static_cast<pid_t>(process), 0) == 0 || errno == EPERM)
                   ? Look::other_user
                   : Look::no_process;
    }
    const ProcessStatus its(folder);
    const ProcessStatus mine("/proc/self");
    if (!its.has_ids()) return Look::no_process;
    if (!its.runs_as_user(::geteuid()) && ::geteuid() != 0) return Look::other_user;
    if (!same_user_space(folder, "/proc/self")) return Look::other_name_space;
    if ((its.permitted() & ~mine.effective()) != 0) return Look::more_capabilities;
    if (!its.runs_as_user(::geteuid())) return Look::other_user;
    if (!its.runs_as_group(::getegid())) return Look::other_group;
    // Files of a process that is not dumpable belong to root.
    if (owner.st_uid != ::geteuid() || ::geteuid() == 0) return Look::not_dumpable;
    return Look::refused;
}

}  // namespace

bool ObservedFile::is_sealed() const noexcept {
    const int seals = ::fcntl(descriptor(), F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

// The fields are: number, name in parentheses, which may contain any character, state, and numbers
// from the fourth field on. The 10th field is the number of minor faults, the 22nd the start time,
// the 23rd the bytes of address space and the 24th the pages in memory.
std::optional<ProcessFacts> facts_of(std::uint64_t process) {
    LineReader lines((folder_of(process) + "/stat").c_str());
    std::string text;
    // A name may contain newlines as well.
    for (std::string_view line; lines.next(line);) text.append(line) += '\n';
    const std::size_t begin = text.find('(');
    const std::size_t end = text.rfind(") ");
    if (begin >= text.size() || end >= text.size() || end < begin) return std::nullopt;
    std::string_view rest(text);
    rest.remove_prefix(end + 2);
    if (rest.empty() || rest[0] == 'Z' || rest[0] == 'X') return std::nullopt;
    ProcessFacts facts;
    facts.name = text.substr(begin + 1, end - begin - 1);
    for (int field = 3; field <= 24; ++field) {
        const std::uint64_t number = parse_number(take_field(rest, ' ')).value_or(0);
        if (field == 10) facts.minor_faults = number;
        if (field == 22) facts.start_ticks = number;
        if (field == 23) facts.has_memory = number != 0;
        if (field == 24) facts.resident_bytes = number * page_bytes();
    }
    return facts;
}

std::vector<std::uint64_t> process_numbers() {
    return numbers_in("/proc");
}

std::string thread_name(std::uint64_t process, std::uint64_t thread) {
    LineReader lines((folder_of(process) + "/task/" + std::to_string(thread) + "/comm").c_str());
    std::string_view line;
    return lines.next(line) ? std::string(line) : std::string();
}

OwnName own_name_of(std::uint64_t process) {
    const std::string folder = folder_of(process);
    return {ProcessStatus(folder).innermost_number(), bracketed(target_of(folder + "/ns/pid"))};
}

MemoryFiles memory_files_of(std::uint64_t process, std::string_view name) {
    MemoryFiles found;
    const std::string folder = folder_of(process) + "/fd";
    const std::string wanted = memory_file_text(name);
    const std::vector<std::uint64_t> numbers = numbers_in(folder);
    if (numbers.empty() && ::faccessat(AT_FDCWD, folder.c_str(), R_OK, AT_EACCESS) != 0) {
        found.look = why_refused(process);
        return found;
    }
    found.look = Look::allowed;
    for (const std::uint64_t number : numbers) {
        const std::string path = folder + '/' + std::to_string(number);
        errno = 0;
        if (target_of(path) == wanted) {
            ObservedFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
            if (file) found.files.push_back({number, std::move(file)});
        } else if (errno == EACCES || errno == EPERM) {
            found.look = why_refused(process);
            return found;
        }
    }
    return found;
}

bool holds_file(std::uint64_t process, std::uint64_t descriptor, const ObservedFile& file) {
    struct stat status {};
    const std::string path = folder_of(process) + "/fd/" + std::to_string(descriptor);
    return ::stat(path.c_str(), &status) == 0 && status.st_dev == file.device() &&
           status.st_ino == file.inode();
}

// The fields are: address range, permissions, offset, device, inode, spaces, path.
bool maps_memory_file(std::uint64_t process, std::string_view name, std::uint64_t inode) {
    const std::string wanted = memory_file_text(name);
    const auto is_it = [&](std::string_view line) {
        take_field(line, ' ');
        const std::string_view rights = take_field(line, ' ');
        for (int field = 2; field < 4; ++field) take_field(line, ' ');
        return rights.starts_with("rw") && (inode == 0 || parse_number(line) == inode);
    };
    LineReader lines((folder_of(process) + "/maps").c_str());
    for (std::string_view line; lines.next(line);) {
        if (line.ends_with(wanted) && is_it(line)) return true;
    }
    return false;
}

}  // namespace tensorpool::platform
