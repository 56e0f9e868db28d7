#include "formats/launch/launch.hpp"

#include <elf.h>
#include <sys/xattr.h>

#include <fstream>
#include <system_error>

namespace tensorpool::command::launch {
namespace {

/// The interpreter of a script may be a script itself; the kernel follows this many.
constexpr int max_interpreters = 5;

bool can_be_run(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           ::access(path.c_str(), X_OK) == 0;
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

/// The headers of a program in the format ELF, as its loader reads them.
class Image {
public:
    explicit Image(std::ifstream& file) : file_(file) {
        if (!read(0, header_) || std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0) return;
        is_elf_ = true;
        if (header_.e_ident[EI_CLASS] != ELFCLASS64) return;
        for (unsigned i = 0; i < header_.e_phnum; ++i) {
            Elf64_Phdr part{};
            if (!read(header_.e_phoff + std::uint64_t{i} * header_.e_phentsize, part)) break;
            parts_.push_back(part);
        }
    }

    bool is_elf() const noexcept { return is_elf_; }
    /// The type of processor; 0 for one without addresses of 64 bits.
    unsigned machine() const noexcept {
        return header_.e_ident[EI_CLASS] == ELFCLASS64 ? header_.e_machine : 0U;
    }
    /// Returns the path of the loader; "" if the program is statically linked.
    std::string loader() const {
        const Elf64_Phdr* const part = find(PT_INTERP);
        return part == nullptr ? "" : text_at(part->p_offset);
    }
    /// Returns the names of the libraries with which it is linked.
    std::vector<std::string> libraries() const {
        const Elf64_Phdr* const part = find(PT_DYNAMIC);
        if (part == nullptr) return {};
        std::vector<std::uint64_t> offsets;
        std::uint64_t texts = 0;
        for (std::uint64_t at = 0; at < part->p_filesz; at += sizeof(Elf64_Dyn)) {
            Elf64_Dyn entry{};
            if (!read(part->p_offset + at, entry) || entry.d_tag == DT_NULL) break;
            if (entry.d_tag == DT_NEEDED) offsets.push_back(entry.d_un.d_val);
            if (entry.d_tag == DT_STRTAB) texts = offset_of(entry.d_un.d_ptr);
        }
        std::vector<std::string> names;
        for (const std::uint64_t offset : offsets) names.push_back(text_at(texts + offset));
        return names;
    }

private:
    template <class Header>
    bool read(std::uint64_t offset, Header& header) const {
        file_.clear();
        file_.seekg(static_cast<std::streamoff>(offset));
        return static_cast<bool>(file_.read(reinterpret_cast<char*>(&header), sizeof header));
    }
    std::string text_at(std::uint64_t offset) const {
        file_.clear();
        file_.seekg(static_cast<std::streamoff>(offset));
        std::array<char, 256> text{};
        file_.read(text.data(), text.size() - 1);
        return text.data();
    }
    const Elf64_Phdr* find(Elf64_Word type) const {
        const auto found = std::ranges::find(parts_, type, &Elf64_Phdr::p_type);
        return found == parts_.end() ? nullptr : &*found;
    }
    std::uint64_t offset_of(std::uint64_t address) const {
        for (const Elf64_Phdr& part : parts_) {
            const bool is_inside = part.p_type == PT_LOAD && part.p_vaddr <= address &&
                                   address - part.p_vaddr < part.p_filesz;
            if (is_inside) return part.p_offset + (address - part.p_vaddr);
        }
        return 0;
    }

    std::ifstream& file_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Phdr> parts_;
    bool is_elf_ = false;
};

/// Loaders of one C library have the same name everywhere, in different folders.
std::string name_of_file(const std::string& path) {
    return std::filesystem::path(path).filename();
}

bool is_sanitizer(std::string_view library) {
    constexpr std::string_view names[] = {"libasan.so", "liblsan.so", "libtsan.so", "libhwasan.so",
                                          "libclang_rt."};
    return std::ranges::any_of(names, [&](auto name) { return library.starts_with(name); });
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
    const Image image(file);
    if (!image.is_elf()) return "";
    std::ifstream own_file("/proc/self/exe", std::ios::binary);
    const Image own(own_file);
    if (image.machine() != own.machine()) {
        return printable(path) + " is for another processor type than tensorpool";
    }
    const std::string loader = image.loader();
    if (loader.empty()) {
        return printable(path) + " is statically linked, so no library can be preloaded";
    }
    if (name_of_file(loader) != name_of_file(own.loader())) {
        return fmt::format("{} is started by {}, the loader of another C library than tensorpool's",
                           printable(path), printable(loader));
    }
    const std::vector<std::string> libraries = image.libraries();
    const auto sanitizer = std::ranges::find_if(libraries, is_sanitizer);
    if (sanitizer == libraries.end()) return "";
    return fmt::format("{} is built with a sanitizer, whose malloc {} contains", printable(path),
                       printable(*sanitizer));
}

// parts.cmake defines TENSORPOOL_RUN_…: paths relative to the folder of the command.

/// Joins paths; operator/ leaves an absolute path unchanged.
fs::path path_from(const fs::path& folder, const char* path) {
    return (folder / path).lexically_normal();
}

/// Returns the build folder if the command lies in the one that built it; otherwise "".
fs::path build_folder_of(const fs::path& folder) {
    constexpr std::string_view position = "/" TENSORPOOL_RUN_FOLDER_IN_BUILD;
    std::string text = folder;
    if (!text.ends_with(position)) return {};
    text.resize(text.size() - position.size());
    std::error_code ignored;
    return fs::exists(text + "/cmake_install.cmake", ignored) ? fs::path(text) : fs::path();
}

#ifdef TENSORPOOL_RUN_SHARED
constexpr bool is_shared = true;
#else
constexpr bool is_shared = false;
#endif
constexpr const char* not_shared =
    "this tensorpool was built with BUILD_SHARED_LIBS=OFF, but run needs the pool in a shared "
    "library: build the preset `shared`";

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

/// Checked here because a wrong path in LD_PRELOAD only costs each process a line on stderr, and
/// the program runs on glibc's malloc.
std::string problem_of_malloc(const PartPaths& paths, const std::string& program) {
    const std::string path = paths.interposer;
    if (!is_there(path)) return printable(path) + " does not exist: the installation is incomplete";
    if (path.find_first_of(" :") != std::string::npos) {
        return fmt::format("'{}' has a space or a colon, which LD_PRELOAD does not allow: move it",
                           printable(path));
    }
    return program.empty() ? "" : problem_of_preloading(program);
}

bool has_module(const fs::path& package) {
    std::error_code ignored;
    for (const fs::directory_entry& file : fs::directory_iterator(package, ignored)) {
        if (file.path().filename().string().starts_with("_tensorpool.")) return true;
    }
    return false;
}

std::string problem_of_python(const PartPaths& paths) {
    if (!has_module(paths.package)) {
        return fmt::format(
            "{} has no module: it is built if the Debian packages python3-dev, "
            "python3-numpy and pybind11-dev are installed",
            printable(paths.package.string()));
    }
    const std::string folder = paths.site_folder;
    if (!is_there(paths.site_folder / "sitecustomize.py")) {
        return printable(folder) +
               "/sitecustomize.py does not exist: the installation is incomplete";
    }
    if (folder.find(':') == std::string::npos) return "";
    return fmt::format("'{}' has a colon, which PYTHONPATH does not allow: move it",
                       printable(folder));
}

std::string problem_of_torch(const PartPaths& paths) {
    if (std::string problem = problem_of_python(paths); !problem.empty()) return problem;
    if (is_there(paths.torch) && is_there(paths.package / "_torch.py")) return "";
    return fmt::format(
        "{} does not exist: it is built if the Debian package libtorch-dev is installed",
        printable(paths.torch.string()));
}

std::string problem_of(Part part, const PartPaths& paths, const std::string& program) {
    if (part == Part::profile) return "";
    if (!is_shared) return not_shared;
    if (part == Part::malloc) return problem_of_malloc(paths, program);
    return part == Part::torch ? problem_of_torch(paths) : problem_of_python(paths);
}

bool is_known(const std::string& name) {
    return std::ranges::any_of(all_parts, [&](Part part) { return name_of(part) == name; });
}

/// Whether the part is enabled only if it is named, and others are enabled as if it were not.
bool is_beside_others(std::string_view name) {
    return name == name_of(Part::holders) || name == name_of(Part::profile);
}

void check_names(const std::vector<std::string>& with) {
    for (const std::string& name : with) {
        if (is_known(name) || (name == "none" && with.size() == 1)) continue;
        throw CommandError(wrong_usage,
                           fmt::format("run: --with {}: expected malloc, numpy, torch, holders, "
                                       "profile, several of them separated by commas, or none",
                                       printable(name)));
    }
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

PartPaths part_paths_beside(const fs::path& folder) {
    if (const fs::path build = build_folder_of(folder); !build.empty()) {
        return {build / "lib/interpose/libtensorpool_interpose.so",
                build / "lib/libtensorpool_torch.so", build / "python/tensorpool",
                build / "python_site"};
    }
    const fs::path libraries = path_from(folder, TENSORPOOL_RUN_LIBRARIES);
    return {libraries / "libtensorpool_interpose.so", libraries / "libtensorpool_torch.so",
            path_from(folder, TENSORPOOL_RUN_PYTHON) / "tensorpool",
            path_from(folder, TENSORPOOL_RUN_DATA) / "python_site"};
}

PartPaths find_part_paths() {
    return part_paths_beside(fs::read_symlink("/proc/self/exe").parent_path());
}

std::string_view name_of(Part part) noexcept {
    constexpr std::string_view names[] = {"malloc", "numpy", "torch", "holders", "profile"};
    return names[static_cast<std::size_t>(part)];
}

std::string_view title_of(Part part) noexcept {
    constexpr std::string_view titles[] = {"malloc", "NumPy", "PyTorch", "holders", "profile"};
    return titles[static_cast<std::size_t>(part)];
}

std::vector<PlannedPart> plan_parts(const std::vector<std::string>& with, const PartPaths& paths,
                                    const std::string& program) {
    check_names(with);
    const bool by_default = std::ranges::all_of(with, is_beside_others);
    std::vector<PlannedPart> parts;
    for (const Part part : all_parts) {
        const bool named = std::ranges::find(with, name_of(part)) != with.end();
        if (!named && (!by_default || is_beside_others(name_of(part)))) continue;
        parts.push_back({part, problem_of(part, paths, program)});
        if (!named || parts.back().is_put()) continue;
        throw CommandError(run_failed,
                           fmt::format("run: --with {}: {}", name_of(part), parts.back().problem));
    }
    if (with.empty() && !is_shared) {
        throw CommandError(run_failed,
                           fmt::format("run: {}; or use --with none, for a program that uses "
                                       "tensorpool itself",
                                       not_shared));
    }
    return parts;
}

bool is_put(const std::vector<PlannedPart>& parts, Part part) noexcept {
    return std::ranges::any_of(
        parts, [&](const PlannedPart& one) { return one.part == part && one.is_put(); });
}

}  // namespace tensorpool::command::launch
