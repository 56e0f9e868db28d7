#include "explain/explanation.hpp"

#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "common/settings.hpp"

namespace tensorpool::command::explain {
namespace {

// The heaps of glibc's arenas begin at multiples of their largest size.
constexpr std::uint64_t heap_bytes = std::uint64_t{64} << 20;
// Below a thread's stack lies a range of this size or less that may not be accessed.
constexpr std::uint64_t max_guard_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t min_stack_bytes = std::uint64_t{16} << 10;

/// Parses "begin-end access offset device inode path". Returns false for other lines.
bool parse_head(const std::string& line, Mapping& mapping) {
    std::istringstream in(line);
    char dash = 0;
    std::string offset, device, inode;
    in >> std::hex >> mapping.begin >> dash >> mapping.end >> mapping.access >> offset >> device >>
        inode;
    if (!in || dash != '-') return false;
    std::getline(in >> std::ws, mapping.path);
    return true;
}

bool is_anonymous(const Mapping& mapping) {
    return mapping.path.empty() || mapping.path.starts_with("[anon:") ||
           mapping.path.starts_with("/anon_hugepage");
}

bool is_heap(const std::vector<Mapping>& mappings, std::size_t index) {
    const Mapping& mapping = mappings[index];
    if (mapping.path == "[heap]") return true;
    if (!is_anonymous(mapping) || mapping.begin % heap_bytes != 0) return false;
    const std::uint64_t end = mapping.begin + heap_bytes;
    if (mapping.end >= end) return mapping.end == end;
    if (index + 1 == mappings.size()) return false;
    const Mapping& rest = mappings[index + 1];
    return rest.begin == mapping.end && rest.end == end && !rest.is_accessible();
}

bool is_stack(const std::vector<Mapping>& mappings, std::size_t index) {
    const Mapping& mapping = mappings[index];
    if (mapping.path.starts_with("[stack")) return true;
    if (!is_anonymous(mapping) || index == 0 || mapping.bytes() < min_stack_bytes) return false;
    const Mapping& guard = mappings[index - 1];
    return guard.end == mapping.begin && is_anonymous(guard) && !guard.is_accessible() &&
           guard.bytes() <= max_guard_bytes;
}

bool is_shared(const Mapping& mapping) {
    constexpr std::string_view places[] = {"/dev/shm/", "/memfd:", "/SYSV", "/dev/zero",
                                           "[anon_shmem:"};
    for (const std::string_view place : places) {
        if (mapping.path.starts_with(place)) return true;
    }
    return mapping.path.empty() && mapping.access.ends_with('s');
}

constexpr std::uint64_t page_bytes = 4096;
// CPython maps small objects in arenas of this size since 3.10 (Objects/obmalloc.c).
constexpr std::uint64_t python_arena_bytes = std::uint64_t{1} << 20;

/// Returns the bytes of the block of glibc's malloc that begins here; 0 if none does. Such a block
/// has two words before its contents: 0, and its size with the bit IS_MMAPPED (malloc/malloc.c).
std::uint64_t chunk_at(std::uint64_t address, std::uint64_t end, const ReadWord& read_word) {
    constexpr std::uint64_t flags = 7;
    constexpr std::uint64_t is_mapped = 2;
    const std::optional<std::uint64_t> before = read_word(address);
    const std::optional<std::uint64_t> size = read_word(address + sizeof(std::uint64_t));
    if (!before || !size || *before != 0 || (*size & flags) != is_mapped) return 0;
    const std::uint64_t bytes = *size - is_mapped;
    return bytes != 0 && bytes % page_bytes == 0 && bytes <= end - address ? bytes : 0;
}

/// Returns `bytes * part / of`. Requires: `part` is at most `of`, which is not 0.
std::uint64_t share(std::uint64_t bytes, std::uint64_t part, std::uint64_t of) {
    const double ratio = static_cast<double>(part) / static_cast<double>(of);
    return std::min(bytes, static_cast<std::uint64_t>(static_cast<double>(bytes) * ratio));
}

}  // namespace

std::vector<Mapping> read_memory_map(std::istream& smaps) {
    std::vector<Mapping> mappings;
    for (std::string line; std::getline(smaps, line);) {
        Mapping mapping;
        if (parse_head(line, mapping)) {
            mappings.push_back(mapping);
        } else if (line.starts_with("Rss:") && !mappings.empty()) {
            mappings.back().resident_bytes = std::stoull(line.substr(4)) << 10;  // in kB
        }
    }
    return mappings;
}

std::vector<Mapping> read_memory_map(std::uint64_t process) {
    const std::string path = fmt::format("/proc/{}/smaps", process);
    std::ifstream smaps(path);
    std::vector<Mapping> mappings = read_memory_map(smaps);
    if (mappings.empty()) {
        throw CommandError(target_gone,
                           fmt::format("{} cannot be read: expected a process of this user that "
                                       "runs",
                                       path));
    }
    return mappings;
}

MappingKind kind_of(const std::vector<Mapping>& mappings, std::size_t index, Range pools,
                    Range page_map) {
    const Mapping& mapping = mappings[index];
    if (mapping.path.starts_with("/memfd:tensorpool")) return MappingKind::segment;
    if (is_shared(mapping)) return MappingKind::shared;
    if (mapping.path.starts_with("/dev/")) return MappingKind::device;
    const bool has_name = !mapping.path.empty() && !is_anonymous(mapping);
    if (has_name && mapping.path != "[heap]" && !mapping.path.starts_with("[stack")) {
        return MappingKind::file;  // the kernel's own mappings too
    }
    if (pools.contains(mapping)) return MappingKind::pools;
    if (page_map.contains(mapping)) return MappingKind::page_map;
    if (is_heap(mappings, index)) return MappingKind::heap;
    return is_stack(mappings, index) ? MappingKind::stack : MappingKind::anonymous;
}

ReadWord memory_of(std::uint64_t process) {
    const auto memory =
        std::make_shared<std::ifstream>(fmt::format("/proc/{}/mem", process), std::ios::binary);
    memory->rdbuf()->pubsetbuf(nullptr, 0);  // nothing but the word is read
    return [memory](std::uint64_t address) -> std::optional<std::uint64_t> {
        std::uint64_t word = 0;
        memory->clear();
        memory->seekg(static_cast<std::streamoff>(address));
        memory->read(reinterpret_cast<char*>(&word), sizeof word);
        return *memory ? std::optional(word) : std::nullopt;
    };
}

bool runs_python(const std::vector<Mapping>& mappings) {
    return std::ranges::any_of(mappings, [](const Mapping& mapping) {
        const std::string name = mapping.path.substr(mapping.path.rfind('/') + 1);
        return name.starts_with("python3") || name.starts_with("libpython3");
    });
}

MappedChunks chunks_in(const Mapping& mapping, bool is_python, const ReadWord& read_word) {
    if (mapping.resident_bytes == 0 || !mapping.is_accessible()) return {};
    std::uint64_t of_malloc = 0;
    std::uint64_t of_python = 0;
    for (std::uint64_t at = mapping.begin; at < mapping.end;) {
        const std::uint64_t chunk = read_word ? chunk_at(at, mapping.end, read_word) : 0;
        const bool is_arena = is_python && mapping.end - at >= python_arena_bytes;
        if (chunk == 0 && !is_arena) break;
        of_malloc += chunk;
        if (chunk == 0) of_python += python_arena_bytes;
        at += chunk == 0 ? python_arena_bytes : chunk;
    }
    const std::uint64_t resident = mapping.resident_bytes;
    return {share(resident, of_malloc, mapping.bytes()),
            share(resident, of_python, mapping.bytes())};
}

}  // namespace tensorpool::command::explain
