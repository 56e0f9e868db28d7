#include "common/launch/program_file.hpp"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "common/printable.hpp"

namespace tensorpool::command::launch {
namespace {

/// The interpreter of a script may be a script itself; the kernel follows this many.
constexpr int max_interpreters = 5;

bool can_be_run(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
}

template <class Header>
bool read_at(std::ifstream& file, std::uint64_t offset, Header& header) {
    file.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof header));
}

/// Returns the interpreter from a first line such as "#! /usr/bin/env python3", or nothing if the
/// file is not a script.
std::optional<std::string> interpreter_of(std::ifstream& file) {
    std::array<char, 256> begin{};
    file.read(begin.data(), begin.size() - 1);
    file.clear();
    if (begin[0] != '#' || begin[1] != '!') return std::nullopt;
    std::istringstream line(begin.data() + 2);
    std::string path;
    line >> path;
    return path;
}

bool names_a_loader(std::ifstream& file, const Elf64_Ehdr& header) {
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr part{};
        if (!read_at(file, header.e_phoff + std::uint64_t{i} * header.e_phentsize, part)) break;
        if (part.p_type == PT_INTERP) return true;
    }
    return false;
}

unsigned own_machine() {
    std::ifstream self("/proc/self/exe", std::ios::binary);
    Elf64_Ehdr header{};
    return read_at(self, 0, header) ? header.e_machine : 0U;
}

std::string problem_of_rights(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return "";
    const bool as_other_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != ::getuid();
    const bool as_other_group = (status.st_mode & S_ISGID) != 0 && status.st_gid != ::getgid();
    const bool has_capabilities =
        ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
    if (!as_other_user && !as_other_group && !has_capabilities) return "";
    return printable(path) + " runs with elevated privileges, so the loader ignores LD_PRELOAD";
}

std::string problem_of_image(std::ifstream& file, const std::string& path) {
    Elf64_Ehdr header{};
    if (!read_at(file, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return "";
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != own_machine()) {
        return printable(path) + " is for another processor type than tensorpool";
    }
    if (names_a_loader(file, header)) return "";
    return printable(path) + " is statically linked, so no library can be preloaded";
}

}  // namespace

std::string find_program(const std::string& word) {
    if (word.find('/') != std::string::npos) return word;
    const char* const folders = std::getenv("PATH");
    std::istringstream path(folders != nullptr ? folders : "/bin:/usr/bin");
    for (std::string folder; std::getline(path, folder, ':');) {
        std::string file = (folder.empty() ? "." : folder) + '/' + word;
        if (can_be_run(file)) return file;
    }
    return "";
}

std::string problem_of_preloading(const std::string& path) {
    std::string image = path;
    for (int i = 0; i < max_interpreters; ++i) {
        std::ifstream file(image, std::ios::binary);
        const std::optional<std::string> interpreter = interpreter_of(file);
        if (!interpreter) {
            const std::string problem = problem_of_rights(image);
            return problem.empty() ? problem_of_image(file, image) : problem;
        }
        image = *interpreter;
    }
    return "";
}

}  // namespace tensorpool::command::launch
