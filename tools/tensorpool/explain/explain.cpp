#include <fstream>

#include <nlohmann/json.hpp>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "explain/explanation.hpp"

namespace tensorpool::command::explain {
namespace {

std::vector<Cell> cells_of(const Row& row, const Explanation& explanation, Sizes sizes) {
    const bool comes_back = row.back_bytes != 0;
    return {{format_size(row.bytes, sizes)},
            {format_part(ratio(row.bytes, explanation.resident_bytes))},
            {comes_back ? format_size(row.back_bytes, sizes) : ""},
            {printable(row.what)},
            {printable(row.why)},
            {comes_back ? printable(row.how) : ""}};
}

std::string text_of(const std::vector<Allocator>& allocators, const char* title,
                    const Explanation& explanation, Sizes sizes) {
    Table table{.columns = {{"bytes"}, {"part"}, {title, Side::left}}};
    for (const Allocator& one : allocators) {
        constexpr std::size_t max_columns = 200;
        const std::string name = printable(one.name);
        table.rows.push_back({size_cell(one.bytes, sizes),
                              part_cell(one.bytes, explanation.resident_bytes),
                              {fit(name, std::min(columns_of(name), max_columns))}});
    }
    return table_text(table);
}

/// Returns the tables that divide the blocks in use once more.
std::string text_of(const InUse& in_use, const Explanation& explanation, Sizes sizes) {
    const std::string headline = fmt::format(
        "\nblocks in use ({}), by the call that allocated them", format_size(in_use.bytes, sizes));
    std::string text;
    if (in_use.sites.empty()) {
        text = fmt::format("{}: {}\n", headline, in_use.note);
    } else {
        text = fmt::format("{}, estimated from one sample per {}\n", headline,
                           format_size(in_use.interval, sizes)) +
               text_of(in_use.sites, "allocated at", explanation, sizes);
    }
    if (in_use.scopes.empty()) return text;
    return text + "\nby scope: what ended scopes allocated and did not free themselves\n" +
           text_of(in_use.scopes, "scope", explanation, sizes);
}

nlohmann::ordered_json json_of(const std::vector<Allocator>& allocators) {
    nlohmann::ordered_json json = nlohmann::ordered_json::array();
    for (const Allocator& one : allocators) {
        json.push_back({{"name", printable(one.name)}, {"bytes", one.bytes}});
    }
    return json;
}

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

std::string to_text(const Explanation& explanation, Sizes sizes) {
    std::string text =
        fmt::format("process {} ({}): {} resident\n", explanation.process,
                    printable(explanation.name), format_size(explanation.resident_bytes, sizes));
    Table table{.columns = {{"bytes"},
                            {"part"},
                            {"can shrink"},
                            {"what", Side::left},
                            {"kept by", Side::left},
                            {"how to shrink it", Side::left}}};
    for (const Row& row : explanation.rows) {
        table.rows.push_back(cells_of(row, explanation, sizes));
    }
    text += table_text(table);
    if (explanation.in_use.bytes != 0) text += text_of(explanation.in_use, explanation, sizes);
    text.pop_back();
    return text;
}

std::string to_json(const Explanation& explanation) {
    nlohmann::ordered_json json = {{"process", explanation.process},
                                   {"process_name", printable(explanation.name)},
                                   {"resident_bytes", explanation.resident_bytes}};
    json["rows"] = nlohmann::ordered_json::array();
    for (const Row& row : explanation.rows) {
        json["rows"].push_back({{"what", printable(row.what)},
                                {"bytes", row.bytes},
                                {"back_bytes", row.back_bytes},
                                {"why", row.why},
                                {"how", row.how}});
    }
    const InUse& in_use = explanation.in_use;
    json["in_use"] = {{"bytes", in_use.bytes},
                      {"sample_interval", in_use.interval},
                      {"note", in_use.note},
                      {"sites", json_of(in_use.sites)},
                      {"scopes", json_of(in_use.scopes)}};
    return json.dump();
}

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

namespace tensorpool::command {
namespace {

int explain_process(const Settings& settings) {
    StatisticsReader process = attach_chosen(settings);
    const ProcessSnapshot snapshot = process.snapshot();
    if (!snapshot.pools.empty() && snapshot.pool_addresses.bytes == 0) {
        throw CommandError(
            finding, fmt::format("process {} does not publish where its pools lie: expected one "
                                 "that uses a tensorpool with this command, or whose pools hold "
                                 "memory",
                                 snapshot.process));
    }
    explain::Explanation explanation =
        explain::explain(snapshot, explain::read_memory_map(process.process()),
                         explain::memory_of(process.process()));
    add_sites(explanation, profile::name_frames(process.heap_profile(), profile::Value::live));
    print_line(settings.json ? to_json(explanation) : to_text(explanation, sizes_of(settings)));
    return success;
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool explain --pid 4711\n"
    "  tensorpool explain --name train --json | jq '.rows[0]'";

constexpr const char* details =
    "Each row is a part of the resident memory, and the rows add up to it. \"can shrink\" is what "
    "the call or command in the last column gives back to the system. \"kept by\" says why free "
    "memory was not given back: free pages and large blocks stay for the retention period "
    "(RetentionPolicy, TENSORPOOL_RETAIN_MS), then until the next slow path of a pool or the "
    "background trimmer.\n"
    "\n"
    "What is free in pools is known from their statistics. What else is resident in their "
    "addresses counts as blocks in use, up to their bytes. Arenas and scratches count as touched "
    "up to their highest use. Where free small blocks fill whole pages of spans, these are counted "
    "exactly. How many of the blocks in magazines and depots do is estimated.\n"
    "\n"
    "The tables below the first one divide its blocks in use once more. Call sites are estimates "
    "from the heap profile, scaled down where their sum would exceed what is in use. A scope shows "
    "what its ended runs allocated minus what they freed: blocks that are freed outside of the "
    "scope still count, and open scopes do not.\n"
    "\n"
    "Large blocks of malloc are recognized by their first words, if the system lets this user read "
    "the memory of the process. Otherwise they count as other mappings. In a process with Python, "
    "anonymous mappings of 1 MiB and more that are nothing else count as its small objects.\n"
    "\n"
    "The process is not stopped. If it allocates at that moment, rows may differ by what changed "
    "between two reads.\n";

}  // namespace

void add_explain(CLI::App& app, Settings& settings) {
    CLI::App* const command = add_subcommand(
        app, settings,
        {"explain", "Say what the resident memory of a process consists of", footer, details},
        [&settings] { return explain_process(settings); });
    add_process_options(*command, settings);
    add_output_options(*command, settings);
}

}  // namespace tensorpool::command
