#include "explain/mapped_chunks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <memory>

namespace tensorpool::command::explain {
namespace {

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
