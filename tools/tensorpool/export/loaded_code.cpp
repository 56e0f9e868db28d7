#include "export/loaded_code.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/posix.hpp"

namespace tensorpool::command::export_ {
namespace {

// No file's image is larger, and the images of all modules of a trace fit beside each other.
constexpr std::uint64_t max_image_bytes = std::uint64_t{1} << 41;

class RegularFile {
public:
    explicit RegularFile(const std::string& path) {
        // Checked before opening, because opening a device may have side effects.
        struct stat about {};
        if (::stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return;
        file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    }

    template <class Record>
    bool read(Record& record, std::uint64_t offset) const {
        if (!file_ || offset > INT64_MAX) return false;
        return ::pread(file_.number(), &record, sizeof record, static_cast<off_t>(offset)) ==
               static_cast<ssize_t>(sizeof record);
    }

private:
    Descriptor file_;
};

bool is_ours(const Elf64_Ehdr& header) {
    constexpr int byte_order =
        std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
    return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 &&
           header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_ident[EI_DATA] == byte_order &&
           header.e_phentsize == sizeof(Elf64_Phdr);
}

// The path ends a line of maps, so it must contain no white space.
std::string one_line(std::string path) {
    std::ranges::replace_if(
        path, [](char character) { return static_cast<unsigned char>(character) <= ' '; }, '?');
    return path;
}

}  // namespace

CodeSegment code_segment_of(const std::string& path) {
    const RegularFile file(path);
    Elf64_Ehdr header;
    if (!file.read(header, 0) || !is_ours(header)) return {};
    for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        if (!file.read(segment, header.e_phoff + i * sizeof segment)) return {};
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0) {
            return {segment.p_offset, segment.p_vaddr};
        }
    }
    return {};
}

LoadedCode::LoadedCode(const trace::Recording& recording) : recording_(recording) {
    for (const auto& stack : recording.stacks) {
        for (const trace::RecordedFrame frame : stack) {
            if (frame.offset >= max_image_bytes || frame.module >= recording.modules.size()) {
                continue;
            }
            Module& module = modules_[recording.modules[frame.module].path];
            module.max_offset = std::max(module.max_offset, frame.offset);
        }
    }
    std::uint64_t base = 0;
    for (auto& [path, module] : modules_) module.base = base += max_image_bytes;
}

std::uint64_t LoadedCode::address_of(trace::RecordedFrame frame) const {
    if (frame.module >= recording_.modules.size() || frame.offset >= max_image_bytes) return 0;
    const auto module = modules_.find(recording_.modules[frame.module].path);
    return module == modules_.end() ? 0 : module->second.base + frame.offset;
}

std::string LoadedCode::maps() const {
    constexpr std::uint64_t page = 4096;
    std::string text;
    for (const auto& [path, module] : modules_) {
        const CodeSegment code = code_segment_of(path);
        const std::uint64_t address = std::min(code.address, max_image_bytes) / page * page;
        const std::uint64_t end = module.base + module.max_offset / page * page + page;
        text += fmt::format("{:x}-{:x} r-xp {:08x} 00:00 0 {}\n", module.base + address,
                            std::max(end, module.base + address + page),
                            code.file_offset / page * page, one_line(path));
    }
    return text;
}

}  // namespace tensorpool::command::export_
